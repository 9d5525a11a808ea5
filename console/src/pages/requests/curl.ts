import type { Call } from './call';

/** A curl command that makes a call like this one. The key is a variable, so that it stays out of the shell's history. */
export function curlOf({ method, path, provider, model, streamed }: Call): string {
  const address = `${window.location.origin}${path ?? '/v1/chat/completions'}`;
  const isAnthropic = /\/v1\/messages/.test(path ?? '');
  const lines = [`curl ${quoted(address)}`, `-X ${method}`, `-H "Authorization: Bearer $POSTERN_KEY"`];
  if (method === 'POST') {
    const body = {
      ...(model !== null && { model }),
      ...(isAnthropic && { max_tokens: 256 }),
      messages: [{ role: 'user', content: 'Hello' }],
      ...(streamed && { stream: true }),
    };
    lines.push(`-H 'Content-Type: application/json'`);
    if (isAnthropic) lines.push(`-H 'anthropic-version: 2023-06-01'`);
    lines.push(`-d ${quoted(JSON.stringify(body))}`);
  }
  return `# Provider: ${provider.replaceAll(/[\r\n]/g, ' ')}\n${lines.join(' \\\n  ')}`;
}

/** For a POSIX shell: nothing inside single quotes is special. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
