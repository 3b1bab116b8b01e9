/// The style sheet of the sign-in pages.
enum PageStyle {
  static let text = #"""
    :root {
      color-scheme: light dark;
      --page: #f4f3f0; --card: #ffffff; --text: #1d1b18; --quiet: #625d55; --line: #dcd8d0; --hover: #f6f4ef;
      --accent: #b3400f; --on-accent: #ffffff; --badge: #fdeee2; --badge-text: #8a320c; --bad: #b3261e;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --page: #171614; --card: #211f1c; --text: #f1eee8; --quiet: #aca59a; --line: #3b3832; --hover: #2b2925;
        --accent: #ff9b63; --on-accent: #2a1204; --badge: #3a2416; --badge-text: #ffc29c; --bad: #ff9d94;
      }
    }
    * { box-sizing: border-box; }
    [hidden] { display: none !important; }
    body {
      margin: 0; min-height: 100vh; padding: 24px 16px; background: var(--page); color: var(--text);
      font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif;
      display: flex; justify-content: center; align-items: flex-start;
    }
    main {
      width: 100%; max-width: 440px; margin-top: min(8vh, 56px); padding: 28px; background: var(--card);
      border: 1px solid var(--line); border-radius: 14px;
      box-shadow: 0 1px 2px rgb(0 0 0 / 5%), 0 8px 28px rgb(0 0 0 / 6%);
    }
    .badge {
      display: inline-block; padding: 2px 10px; border-radius: 999px; background: var(--badge);
      color: var(--badge-text); font-size: 13px; font-weight: 600;
    }
    h1 { margin: 12px 0 4px; font-size: 24px; line-height: 1.25; letter-spacing: -0.01em; overflow-wrap: anywhere; }
    h1:focus { outline: none; }
    p { margin: 0 0 16px; color: var(--quiet); overflow-wrap: anywhere; }
    ul {
      list-style: none; margin: 0 0 16px; padding: 0; border: 1px solid var(--line); border-radius: 10px;
      overflow: hidden;
    }
    li + li { border-top: 1px solid var(--line); }
    button, input { font: inherit; color: inherit; }
    button { cursor: pointer; border-radius: 10px; }
    button:focus-visible, input:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
    .account {
      display: flex; gap: 12px; align-items: center; width: 100%; padding: 12px 14px; text-align: left;
      background: none; border: 0; border-radius: 0;
    }
    .account:hover { background: var(--hover); }
    .account:focus-visible { outline-offset: -3px; border-radius: 10px; }
    .initial {
      flex: none; width: 38px; height: 38px; border-radius: 50%; display: grid; place-items: center; font-weight: 600;
      background: var(--badge); color: var(--badge-text);
    }
    .who { min-width: 0; }
    .who span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    .who .mail { color: var(--quiet); font-size: 14px; }
    .actions { display: flex; flex-wrap: wrap; gap: 10px; margin-top: 8px; }
    .actions button {
      flex: 1 1 auto; min-height: 44px; padding: 8px 16px; border: 1px solid var(--line);
      background: none;
    }
    .actions button:hover { background: var(--hover); }
    .actions .first {
      background: var(--accent); border-color: var(--accent); color: var(--on-accent);
      font-weight: 600;
    }
    .actions .first:hover { background: var(--accent); filter: brightness(1.08); }
    .link { padding: 0; border: 0; background: none; color: var(--accent); text-decoration: underline; }
    label { display: block; margin-bottom: 4px; font-weight: 600; font-size: 14px; }
    .optional { font-weight: 400; color: var(--quiet); }
    .field { margin-bottom: 14px; }
    .field input {
      width: 100%; min-height: 44px; padding: 8px 12px; border: 1px solid var(--line); border-radius: 10px;
      background: var(--card);
    }
    .field input[aria-invalid="true"] { border-color: var(--bad); }
    .check { display: flex; gap: 10px; align-items: flex-start; margin: 4px 0 16px; }
    .check input { width: 20px; height: 20px; margin: 2px 0 0; flex: none; accent-color: var(--accent); }
    .check label { font-weight: 400; font-size: 15px; margin: 0; }
    .bad { margin: 4px 0 0; color: var(--bad); font-size: 14px; }
    .code { font: 13px/1.4 ui-monospace, "Liberation Mono", monospace; }
    .wait {
      width: 28px; height: 28px; border: 3px solid var(--line); border-top-color: var(--accent);
      border-radius: 50%;
    }
    @media (prefers-reduced-motion: no-preference) { .wait { animation: turn 0.9s linear infinite; } }
    @keyframes turn { to { transform: rotate(360deg); } }
    @media (forced-colors: active) { .initial, .badge, .actions .first { border: 1px solid; } }
    """#
}
