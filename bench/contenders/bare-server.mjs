// node:http in front of undici's `dispatch`: a body of known length up to 256 KiB is gathered into one buffer, the rest
// streams; the answer goes from undici's handler straight to the response. No key, no log, hardly a header looked at.
import { createServer } from 'node:http';
import { Pool } from 'undici';

const GATHER_BYTES = 262_144;
const DROPPED = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive']);

const pool = new Pool(process.argv[2], { pipelining: 1, allowH2: false, headersTimeout: 0, bodyTimeout: 0 });

const server = createServer({ noDelay: true, requestTimeout: 0, keepAliveTimeout: 75_000 }, (req, res) => {
  const length = req.headers['content-length'];
  if (length !== undefined && Number(length) <= GATHER_BYTES) {
    const chunks = [];
    req.on('data', (chunk) => chunks.push(chunk));
    req.on('end', () => forward(req, res, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
  } else {
    forward(req, res, req);
  }
});

function forward(req, res, body) {
  const headers = kept(req.rawHeaders);
  if (req.headers['content-length'] !== undefined)
    headers.push('Content-Length', req.headers['content-length']);
  let abort = () => {};
  let over = false;
  res.on('close', () => {
    if (!over) abort();
  });
  pool.dispatch(
    { path: req.url, method: req.method, headers, body },
    {
      onConnect(stop) {
        abort = stop;
        if (res.closed) stop();
      },
      onHeaders(status, rawHeaders, resume, reason) {
        res.on('drain', resume);
        res.sendDate = false;
        res.writeHead(status, reason, answerHeaders(rawHeaders));
        return true;
      },
      onData: (chunk) => res.write(chunk),
      onComplete() {
        over = true;
        res.end();
      },
      onError() {
        over = true;
        if (res.headersSent) res.destroy();
        else res.writeHead(502).end();
      },
    },
  );
}

function kept(raw) {
  const out = [];
  for (let i = 0; i < raw.length; i += 2)
    if (!DROPPED.has(raw[i].toLowerCase())) out.push(raw[i], raw[i + 1]);
  return out;
}

function answerHeaders(raw) {
  const out = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i].latin1Slice();
    if (name.length !== 10 && name.length !== 17) out.push(name, raw[i + 1].latin1Slice());
    else if (!/^(connection|keep-alive|transfer-encoding)$/i.test(name))
      out.push(name, raw[i + 1].latin1Slice());
  }
  return out;
}

server.listen(0, '127.0.0.1', 4_096, () => process.stdout.write(`listening on ${server.address().port}\n`));
process.stdin.on('end', () => process.exit(0)).resume();
process.on('SIGTERM', () => process.exit(0));
