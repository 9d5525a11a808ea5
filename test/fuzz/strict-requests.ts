/** One whole, well-formed request as a strict reader of RFC 9112 takes it from a stream. */
export interface StrictRequest {
  method: string;
  target: string;
  body: Buffer;
}

export interface StrictReading {
  requests: StrictRequest[];
  /** After those: a well-formed head whose body is broken or has not arrived whole. */
  begun: boolean;
}

const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const REQUEST_LINE = new RegExp(`^(${TOKEN}) +([\\x21-\\x7e]+) +HTTP/1\\.([01])$`);
const FIELD_LINE = new RegExp(`^(${TOKEN}):[\\t ]*([\\t\\x20-\\x7e\\x80-\\xff]*?)[\\t ]*$`);
const CHUNK_LINE = /^([0-9a-f]+)(?:;[\t\x20-\x7e\x80-\xff]*)?$/i;
const END_OF_HEAD = Buffer.from('\r\n\r\n');

/**
 * The oracle of the fuzz: how many requests these bytes legally hold. Written from the RFC and not from the gateway;
 * it gives up at the first thing that is not well-formed, and where the connection must end.
 */
export function readStrictly(bytes: Buffer): StrictReading {
  const requests: StrictRequest[] = [];
  let at = 0;
  for (;;) {
    // RFC 9112 2.2: empty lines before a request line are ignored.
    while (bytes[at] === 0x0d || bytes[at] === 0x0a) at++;
    const end = bytes.indexOf(END_OF_HEAD, at);
    if (end === -1) return { requests, begun: false };
    const head = readHead(bytes.toString('latin1', at, end));
    if (head === null) return { requests, begun: false };
    const body = head.chunked
      ? readChunks(bytes, end + 4)
      : end + 4 + head.length <= bytes.length
        ? { data: bytes.subarray(end + 4, end + 4 + head.length), end: end + 4 + head.length }
        : null;
    if (body === null) return { requests, begun: true };
    requests.push({ method: head.method, target: head.target, body: body.data });
    if (head.last) return { requests, begun: false };
    at = body.end;
  }
}

interface StrictHead {
  method: string;
  target: string;
  length: number;
  chunked: boolean;
  /** Nothing after this request is a request. */
  last: boolean;
}

function readHead(text: string): StrictHead | null {
  const [first, ...lines] = text.split('\r\n');
  const request = REQUEST_LINE.exec(first!);
  if (request === null) return null;
  const fields: [string, string][] = [];
  for (const line of lines) {
    const field = FIELD_LINE.exec(line);
    if (field === null) return null;
    fields.push([field[1]!.toLowerCase(), field[2]!]);
  }
  const values = (name: string) => fields.filter(([key]) => key === name).map(([, value]) => value);
  const [lengths, codings, hosts] = [values('content-length'), values('transfer-encoding'), values('host')];
  const old = request[3] === '0';
  if (hosts.length > 1 || (hosts.length === 0 && !old)) return null;
  if (lengths.length + codings.length > 1) return null;
  if (lengths.some((value) => !/^\d+$/.test(value) || !Number.isSafeInteger(Number(value)))) return null;
  if (codings.some((value) => value.toLowerCase() !== 'chunked' || old)) return null;
  const options = values('connection').flatMap((value) =>
    value.split(',').map((option) => option.trim().toLowerCase()),
  );
  return {
    method: request[1]!,
    target: request[2]!,
    length: Number(lengths[0] ?? 0),
    chunked: codings.length === 1,
    last: options.includes('close') || (old && !options.includes('keep-alive')) || request[1] === 'CONNECT',
  };
}

function readChunks(bytes: Buffer, from: number): { data: Buffer; end: number } | null {
  const parts: Buffer[] = [];
  for (let at = from; ;) {
    const line = bytes.indexOf('\r\n', at);
    const size = line === -1 ? null : CHUNK_LINE.exec(bytes.toString('latin1', at, line));
    if (!size) return null;
    const length = parseInt(size[1]!, 16);
    at = line + 2;
    if (length === 0) return readTrailers(bytes, at, Buffer.concat(parts));
    if (!Number.isSafeInteger(length) || at + length + 2 > bytes.length) return null;
    parts.push(bytes.subarray(at, at + length));
    if (bytes.toString('latin1', at + length, at + length + 2) !== '\r\n') return null;
    at += length + 2;
  }
}

function readTrailers(bytes: Buffer, from: number, data: Buffer): { data: Buffer; end: number } | null {
  for (let at = from; ;) {
    const line = bytes.indexOf('\r\n', at);
    if (line === -1) return null;
    if (line === at) return { data, end: at + 2 };
    if (!FIELD_LINE.test(bytes.toString('latin1', at, line))) return null;
    at = line + 2;
  }
}
