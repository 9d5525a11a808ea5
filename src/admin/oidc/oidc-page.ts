/** Shown after the callback. It continues by itself, from this origin, so that the browser sends the session cookie. */
export function continuePage(path: string): string {
  return page(
    'Signed in',
    `<meta http-equiv="refresh" content="0; url=${escaped(path)}">`,
    `<p><a href="${escaped(path)}">Continue</a></p>`,
  );
}

export function failurePage(message: string): string {
  return page(
    'Not signed in',
    '',
    `<p>${escaped(message)}</p>\n<p><a href="/console">Back to the console</a></p>`,
  );
}

function page(title: string, head: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${head}
<link rel="icon" href="data:,">
<title>Postern</title>
<h1>${title}</h1>
${body}
</html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
