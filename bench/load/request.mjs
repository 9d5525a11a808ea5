// The bytes of the calls: computed once, sent many times.

const BODY_BYTES = 1_024;

/** A chat completion request of 1 KiB. */
export function chatRequest(contender) {
  return chatAt(contender, '/v1/chat/completions');
}

/** The same, to which the stand-in responds after so many milliseconds. */
export function delayedRequest(contender, ms) {
  return chatAt(contender, `/v1/chat/completions?delay=${ms}`);
}

function chatAt(contender, path) {
  const body = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: '' }] });
  const content = 'x'.repeat(BODY_BYTES - body.length);
  return post(contender, path, body.replace('""', `"${content}"`));
}

/** A request for a stream of the stand-in: so many chunks, so many milliseconds apart. */
export function streamRequest(contender, { chunks, everyMs }) {
  const body = JSON.stringify({ model: 'gpt-4o-mini', stream: true, messages: [] });
  return post(contender, `/v1/chat/completions?chunks=${chunks}&every=${everyMs}`, body);
}

const PROSE =
  'The gate is "shut" at night, and whoever has the key may pass. Ask the guard; he knows the way.\n';
const MESSAGES = 40;

/** A streamed chat of so many KiB in 40 messages of prose; the stand-in sends all of its chunks at once. */
export function promptRequest(contender, kib, chunks) {
  const body = JSON.stringify({ model: 'gpt-4o-mini', stream: true, messages: proseOf(kib) });
  return post(contender, `/v1/chat/completions?chunks=${chunks}&every=0`, body);
}

/** The body of such a chat. Another number makes another prompt. */
export function promptBody(kib, number, isStreamed) {
  const stream = isStreamed ? { stream: true, stream_options: { include_usage: true } } : {};
  const messages = [{ role: 'system', content: `prompt ${number}` }, ...proseOf(kib)];
  return Buffer.from(JSON.stringify({ model: 'gpt-4o-mini', ...stream, messages }));
}

function proseOf(kib) {
  const content = PROSE.repeat(Math.ceil((kib * 1_024) / PROSE.length));
  const most = Math.max(1, Math.floor((kib * 1_024) / MESSAGES) - 40);
  return Array.from({ length: MESSAGES }, (_, i) => ({
    role: i % 2 === 0 ? 'user' : 'assistant',
    content: content.slice(i * most, (i + 1) * most),
  }));
}

/** Only the head of an upload; the stand-in does not read the body for so long. */
export function uploadHead(contender, bytes, holdMs) {
  return head(contender, `/v1/audio/transcriptions?hold=${holdMs}`, 'application/octet-stream', bytes);
}

function post(contender, path, body) {
  return Buffer.from(head(contender, path, 'application/json', Buffer.byteLength(body)) + body);
}

function head({ port, headers }, path, type, length) {
  const lines = [`POST ${path} HTTP/1.1`, `Host: 127.0.0.1:${port}`];
  lines.push('User-Agent: OpenAI/JS 6.49.0', 'Accept: application/json', `Content-Type: ${type}`);
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  return `${lines.join('\r\n')}\r\nContent-Length: ${length}\r\n\r\n`;
}
