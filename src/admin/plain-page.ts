const STYLE = `
body { margin: 0; font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; background: #f6f7f9; color: #1b1e25; }
main { max-width: 34rem; margin: 8vh auto; padding: 1.5rem; box-sizing: border-box; background: #fff; border: 1px solid #dfe2e8; border-radius: 8px; }
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.3; }
h2 { margin: 1.5rem 0 .5rem; font-size: 1rem; }
p, ul { margin: 0 0 .75rem; overflow-wrap: anywhere; }
ul { max-height: 14rem; overflow-y: auto; padding-left: 1.25rem; }
code { font-size: .9em; }
a { color: #2f4fc4; }
.button { display: inline-block; margin-top: .5rem; padding: .4rem .9rem; border: 1px solid #c6cad3; border-radius: 4px; color: inherit; text-decoration: none; }
label { display: block; margin: 0 0 .25rem; }
input[type=text] { width: 100%; box-sizing: border-box; padding: .5rem .75rem; border: 1px solid #767d8a; border-radius: 4px; background: #fff; color: inherit; font: 1.25rem/1.5 ui-monospace, monospace; letter-spacing: .1em; text-transform: uppercase; }
fieldset { margin: 0 0 1rem; padding: 0; border: 0; }
legend { padding: 0; font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0 0 1rem; }
dt { color: #555c69; }
dd { margin: 0; overflow-wrap: anywhere; }
button { margin: .5rem .5rem 0 0; padding: .5rem 1rem; border: 1px solid #767d8a; border-radius: 4px; background: none; color: inherit; font: inherit; cursor: pointer; }
button.main { border-color: #2f4fc4; background: #2f4fc4; color: #fff; }
.error { color: #b3261e; }
@media (max-width: 24rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; } }
@media (prefers-color-scheme: dark) {
  body { background: #16181d; color: #e6e8ec; }
  main { background: #1f2229; border-color: #363b45; }
  a { color: #9db4ff; }
  .button { border-color: #4b515d; color: inherit; }
  dt { color: #a9b0bc; }
  input[type=text] { border-color: #8b929f; background: #16181d; }
  button { border-color: #8b929f; }
  button.main { border-color: #9db4ff; background: #9db4ff; color: #16181d; }
  .error { color: #ff8a80; }
}
`;

/**
 * A page for people that needs no script, with PAGE_HEADERS.
 *
 * @param title text; the other parameters are HTML @param head more elements of the head
 */
export function page(title: string, head: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${head}
<link rel="icon" href="data:,">
<title>Postern</title>
<style>${STYLE}</style>
<main>
<h1>${escaped(title)}</h1>
${body}
</main>
</html>
`;
}

/** Text in HTML. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
