// Commands for a shell. What is in them can come from the users of an app, so everything is quoted.
import { isProduction } from "../api/session.js";

const controls = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g;

/** A text as one word of bash. Control characters, which a terminal would obey when the command is pasted, are written as codes. */
export function quotedForShell(text) {
  if (text.search(controls) < 0) return `'${text.replaceAll("'", "'\\''")}'`;
  const code = (character) => `\\u${character.codePointAt(0).toString(16).padStart(4, "0")}`;
  return `$'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replace(controls, code)}'`;
}

/** A text as one word, without quotes if it needs none. */
export const shellWord = (text) => /^[\w@%+=:,./-]+$/.test(text) && !text.startsWith("-") ? text : quotedForShell(text);

/** The path of a resource in a URL. */
export const urlPath = (path) => path.split("/").map(encodeURIComponent).join("/");

/** The option of curl that signs a request in. In production the token is in a variable, because it is a secret. */
export const authorizationOption = () => isProduction ? '-H "Authorization: Bearer $HEARTH_TOKEN"' : "-H 'Authorization: Bearer owner'";
