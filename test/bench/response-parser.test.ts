import { ResponseParser } from '../../bench/load/response-parser.mjs';

const LENGTH = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ncontent-length: 5\r\n\r\nhello';
const EMPTY = 'HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n';
const NO_BODY = 'HTTP/1.1 204 No Content\r\n\r\n';
const CHUNKED =
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n';
const HINTS = 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n';

function parse(text: string, size: number): [number, number][] {
  const answers: [number, number][] = [];
  const parser = new ResponseParser((status: number, bytes: number) => answers.push([status, bytes]));
  const bytes = Buffer.from(text);
  const reused = Buffer.alloc(size);
  for (let at = 0; at < bytes.length; at += size) {
    const count = bytes.copy(reused, 0, at, at + size);
    parser.feed(reused.subarray(0, count));
    // As the read buffer of a connection is: whatever the parser needs later it must have copied.
    reused.fill('!');
  }
  return answers;
}

describe('ResponseParser', () => {
  const stream = LENGTH + CHUNKED + HINTS + LENGTH + EMPTY + NO_BODY + CHUNKED;
  const answers = [
    [200, 5],
    [200, 13],
    [200, 5],
    [503, 0],
    [204, 0],
    [200, 13],
  ];

  it('finds the same responses wherever the bytes are cut', () => {
    for (let size = 1; size <= stream.length; size++) expect(parse(stream, size)).toEqual(answers);
  });

  it('does not take a half response for one', () => {
    expect(parse(LENGTH.slice(0, -1), 1_000)).toEqual([]);
    expect(parse(CHUNKED.slice(0, -1), 1_000)).toEqual([]);
  });

  it('throws for a response without a length', () => {
    expect(() => parse('HTTP/1.1 200 OK\r\n\r\n', 1_000)).toThrow('without a length');
    expect(() => parse('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n', 1_000)).toThrow('size');
  });
});
