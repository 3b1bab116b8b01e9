import HearthCLI

HearthProgram.main()
