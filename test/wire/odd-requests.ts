/** A request around one oddity: a POST with a five-byte body unless told otherwise. */
function post(headers: string[], body = 'hello', line = 'POST /v1/chat/completions HTTP/1.1'): string {
  return `${[line, 'Host: gateway.test', 'AUTH', ...headers].join('\r\n')}\r\n\r\n${body}`;
}
const get = (target: string) => `GET ${target} HTTP/1.1\r\nHost: gateway.test\r\nAUTH\r\n\r\n`;
const chunked = (body: string) => post(['Transfer-Encoding: chunked'], body);
const host = (...lines: string[]) => ['GET /v1/models HTTP/1.1', ...lines, 'AUTH', '', ''].join('\r\n');
const INNER = get('/v1/models?inner');

/** Requests on the border of RFC 9112 and beyond, by name; AUTH stands for a header line with a good key. */
export const ODD_REQUESTS: [what: string, bytes: string][] = [
  ['a plain request', post(['Content-Length: 5'])],
  ['a chunked request', chunked('5\r\nhello\r\n0\r\n\r\n')],
  ['Content-Length and Transfer-Encoding', post(['Content-Length: 5', 'Transfer-Encoding: chunked'], '0\r\n\r\n' + INNER)],
  ['Transfer-Encoding and Content-Length', post(['Transfer-Encoding: chunked', 'Content-Length: 5'], '0\r\n\r\n' + INNER)],
  ...['+5', '-5', '0x5', '5.0', '5,5', '5 5', '', '"5"', '05', '99999999999999999999', '5;', ' 5', '5 ', '\t5', '5\t'].map(
    (length): [string, string] => [`Content-Length ${JSON.stringify(length)}`, post([`Content-Length: ${length}`])],
  ),
  ['Content-Length twice', post(['Content-Length: 5', 'Content-Length: 5'])],
  ...['gzip, chunked', 'chunked, chunked', 'xchunked', 'chunked, gzip', 'identity', '', 'chunked;a', ', chunked', '"chunked"', 'CHUNKED', 'chunked '].map(
    (coding): [string, string] => [
      `Transfer-Encoding ${JSON.stringify(coding)}`,
      post([`Transfer-Encoding: ${coding}`], '5\r\nhello\r\n0\r\n\r\n'),
    ],
  ),
  ['Transfer-Encoding twice', post(['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], '0\r\n\r\n')],
  ['Transfer-Encoding on HTTP/1.0', post(['Transfer-Encoding: chunked'], '0\r\n\r\n', 'POST /v1/x HTTP/1.0')],
  ...['5\nhello\r\n0\r\n\r\n', '5\r\nhello0\r\n\r\n', '0x5\r\nhello\r\n0\r\n\r\n', '+5\r\nhello\r\n0\r\n\r\n', ' 5\r\nhello\r\n0\r\n\r\n', '5 \r\nhello\r\n0\r\n\r\n', '5;a=b\r\nhello\r\n0\r\n\r\n', '5;a=b\nhello\r\n0\r\n\r\n', 'fffffffffffffffff\r\nhello\r\n0\r\n\r\n', '5\r\nhello\r\n0\r\nX\r\n\r\n', '5\r\nhello\r\n0\r\nX: y\r\n\r\n', '5\r\nhello!\r\n0\r\n\r\n', '\r\nhello\r\n0\r\n\r\n', 'g\r\nhello\r\n0\r\n\r\n'].map(
    (body): [string, string] => [`chunks ${JSON.stringify(body)}`, chunked(body)],
  ),
  ['a bare LF after a header', post(['X: a\nContent-Length: 5'])],
  ['bare LFs everywhere', post(['Content-Length: 5']).replaceAll('\r', '')],
  ['a bare CR in a value', post(['X: a\rb', 'Content-Length: 5'])],
  ['a folded header', post(['X: a\r\n b', 'Content-Length: 5'])],
  ['a blank before the colon', post(['Content-Length : 5'])],
  ['a blank before the first header', post([' X: a', 'Content-Length: 5'])],
  ['NUL in a value', post(['X: a\0b', 'Content-Length: 5'])],
  ['a control byte in a value', post(['X: a\x01b', 'Content-Length: 5'])],
  ['DEL in a value', post(['X: a\x7fb', 'Content-Length: 5'])],
  ['latin-1 in a value', post(['X: caf\xe9', 'Content-Length: 5'])],
  ['a header without a colon', post(['X', 'Content-Length: 5'])],
  ['a header without a name', post([': x', 'Content-Length: 5'])],
  ['a name that is no token', post(['X(a): b', 'Content-Length: 5'])],
  ['a name outside ASCII', post(['X\xe9: b', 'Content-Length: 5'])],
  ['no Host', host()],
  ...['', 'a, b', 'a/b', 'a@b', 'a?b', 'a#b', 'a\\b', '"a"', '\xe9', 'a b', 'a..b', '[::1]', '[::1', ':80', 'a:b', 'a:80:81', 'a_b', '.', 'a.', '%41'].map(
    (value): [string, string] => [`Host ${JSON.stringify(value)}`, host(`Host: ${value}`)],
  ),
  ['two Hosts', host('Host: a', 'Host: b')],
  ['the same Host twice', host('Host: a', 'Host: a')],
  ...['HTTP/0.9', 'HTTP/1.2', 'HTTP/1.10', 'HTTP/2.0', 'HTTP/3.0', 'http/1.1', 'HTTP/1.1 x', 'HTTP/1.1 ', 'RTSP/1.0', 'ICE/1.0', ''].map(
    (protocol): [string, string] => [
      `version ${JSON.stringify(protocol)}`,
      `GET /v1/models ${protocol}\r\nHost: g\r\nAUTH\r\n\r\n`,
    ],
  ),
  ...['get', 'FOO', 'G ET', 'GET\t', ' GET', 'TRACE', 'CONNECT', 'PROPFIND', 'M-SEARCH', 'QUERY'].map(
    (method): [string, string] => [
      `method ${JSON.stringify(method)}`,
      `${method} /v1/models HTTP/1.1\r\nHost: g\r\nAUTH\r\n\r\n`,
    ],
  ),
  ...['/v1/../../x', '/../v1/models', '/v1/%2e%2e/%2e%2e/x', '/v1/..%2f..%2fx', '/v1/%', '/v1/%4', '/v1/%zz', '/v1/%00', '/v1/x%00y', '/v1/\x01', '/v1/\x7f', '/v1/\t', '/v1/\xe9', '/v1/#x', '/v1/x?%zz', '/v1/x?\x01', '/v1/x?#', '*', 'v1/models', 'http://gateway.test/v1/models', 'http:///v1', '//v1/models', '/v1//models', '/v1/x\\y', '/v1/"<>^`{|}', '/v1/x y', '/v1/.', '/v1/models/a%2Fb'].map(
    (target): [string, string] => [`target ${JSON.stringify(target)}`, get(target)],
  ),
  ['a target of 60 KB', get(`/v1/models?${'x'.repeat(60_000)}`)],
  ['an unknown Expect', post(['Expect: teapot', 'Content-Length: 5'])],
  ['a request behind a closing one', post(['Connection: close', 'Content-Length: 5'], 'hello' + INNER)],
  ['h2c', post(['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk', 'Content-Length: 5'])],
  ['an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + INNER],
  ['empty lines first', '\r\n\r\n' + INNER],
]; // oxfmt-ignore

/** What the gateway forwards although nginx does not, each with its reason; the test fails when one is no longer so. */
export const NGINX_IS_STRICTER = new Set([
  // RFC 9110 5.6.3: blanks around a value are spaces and tabs.
  'Content-Length "\\t5"',
  // RFC 3986 3.2.2: dots may stand anywhere in a reg-name. The value is not used.
  'Host "a..b"',
  'Host "."',
  // Node's parser takes RTSP for HTTP of the same number and tells nobody; the framing is the same.
  'version "RTSP/1.0"',
]);

/** Legal, rejected by nginx, and taken or rejected by different releases of Node's parser: either will do. */
export const RELEASES_DIFFER = new Set([
  // RFC 9110 5.5: blanks after a value are spaces and tabs. Node 20 rejects the tab, Node 24 takes it.
  'Content-Length "5\\t"',
]);
