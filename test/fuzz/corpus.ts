/** Valid requests of many forms, each with its own mark in target and body. */
export function requestsMarked(mark: string, auth: string): Buffer[] {
  const head = (line: string, ...headers: string[]) =>
    [`${line} HTTP/1.1`, 'Host: gateway.test', auth, ...headers, '', ''].join('\r\n');
  const chat = `/v1/chat/completions?m=${mark}`;
  const text = `{"model":"m","messages":[{"role":"user","content":"${mark}"}]}`;
  const size = text.length.toString(16);
  const sized = `Content-Length: ${text.length}`;
  return [
    head(`POST ${chat}`, 'Content-Type: application/json', sized) + text,
    head(`POST ${chat}`, 'Transfer-Encoding: chunked') + `${size}\r\n${text}\r\n0\r\n\r\n`,
    head(`POST ${chat}`, 'Transfer-Encoding: chunked', 'Trailer: X-Sum') + `${size};e="x"\r\n${text}\r\n0\r\nX-Sum: 1\r\n\r\n`,
    head(`GET /v1/models?m=${mark}`, 'Accept: */*', 'User-Agent: fuzz'),
    head(`HEAD /v1/models?m=${mark}`),
    head(`DELETE /p/default/v1/things/${mark}`, 'X-Twice: 1', 'x-twice: 2'),
    head(`POST ${chat}`, 'Expect: 100-continue', sized) + text,
    head(`POST ${chat}`, 'Connection: close', sized) + text,
    head(`POST ${chat}`, 'Connection: Upgrade', 'Upgrade: h2c', sized) + text,
    head(`POST ${chat}`, sized) + text + head(`GET /v1/models?n=${mark}`),
    head(`POST ${chat}`, sized) + text + head(`POST ${chat}&n`, 'Transfer-Encoding: chunked') + `${size}\r\n${text}\r\n0\r\n\r\n`,
    `POST ${chat} HTTP/1.0\r\n${auth}\r\n${sized}\r\n\r\n${text}`,
    head('POST /v1/chat/completions', 'Content-Length: 0'),
    head(`POST ${chat}`, 'X-Large: ' + 'x'.repeat(2_000), sized) + text,
  ].map((message) => Buffer.from(message, 'latin1')); // oxfmt-ignore
}

/** Valid answers of many forms, each with its own mark in a header and in the body. */
export function answersMarked(mark: string): Buffer[] {
  const head = (status: string, ...headers: string[]) =>
    [`HTTP/1.1 ${status}`, `X-Mark: ${mark}`, ...headers, '', ''].join('\r\n');
  const text = `{"id":"${mark}","choices":[{"message":{"content":"${mark}"}}],"usage":{"prompt_tokens":1}}`;
  const events = [`data: {"id":"${mark}"}\n\n`, `data: {"x":"${mark}"}\n\n`, 'data: [DONE]\n\n'];
  const chunks = events.map((event) => `${event.length.toString(16)}\r\n${event}\r\n`).join('');
  const sized = `Content-Length: ${text.length}`;
  return [
    head('200 OK', 'Content-Type: application/json', sized) + text,
    head('200 OK', 'Content-Type: text/event-stream', 'Transfer-Encoding: chunked') + `${chunks}0\r\n\r\n`,
    head('200 OK', 'Transfer-Encoding: chunked', 'Trailer: X-Sum') + `${chunks}0\r\nX-Sum: ${mark}\r\n\r\n`,
    head('429 Too Many Requests', 'Retry-After: 1', sized) + text,
    head('200 OK', 'Connection: close') + text,
    head('204 No Content', 'X-A: 1'),
    head('304 Not Modified', 'ETag: "x"', 'Content-Length: 5'),
    `HTTP/1.1 103 Early Hints\r\nLink: </${mark}>\r\n\r\n` + head('200 OK', sized) + text,
    `HTTP/1.0 200 OK\r\nX-Mark: ${mark}\r\n${sized}\r\n\r\n${text}`,
    head('200 OK', 'Content-Encoding: gzip', 'Connection: keep-alive', 'Keep-Alive: timeout=5', sized) + text,
    head('500 ', 'Set-Cookie: a=b', 'WWW-Authenticate: a', 'WWW-Authenticate: b', sized) + text,
    head('200 OK', 'Content-Length: 0'),
  ].map((message) => Buffer.from(message, 'latin1')); // oxfmt-ignore
}
