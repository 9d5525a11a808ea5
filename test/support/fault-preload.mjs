// Loaded by preloaded.mjs into a gateway under test, ahead of its own code, which knows nothing of it. Makes the
// system's answers worse at an exact point: POSTERN_TEST_FAULT is `{"at": <point>, "nth": 3, "do": <deed>}`.
//
// Points: `append:B` (or E, U, R) a journal line of that kind, `rotate` a new journal file, `unlink` of one, `head` the
// answer's head to the client, `token` the same of an issued token, `issue` the statement that issues it, `insert` the batch on its way to Postgres, `claim` and `store` of a call made under an
// Idempotency-Key, `settle` of a job at its provider, `sync`, `close` of a port.
// Deeds: `kill-before`, `kill-after`, a code such as `EIO` or `ENOSPC` (once, or `"times"`), `short` writes; for `sync`
// also `hold`: until SIGUSR2, which lets go of the syncs held at that moment.
// With "trace" the order of appends, syncs and writes to clients is printed on standard error.
import fs from 'node:fs';
import { ServerResponse } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { Server, Socket } from 'node:net';

const plan = JSON.parse(process.env.POSTERN_TEST_FAULT ?? '{}');
const real = {
  writeSync: fs.writeSync,
  openSync: fs.openSync,
  unlinkSync: fs.unlinkSync,
  fdatasync: fs.fdatasync,
};
const isJournalFile = (path) => /\/journal\/[0-9a-f-]{36}\/\d+\.log$/.test(String(path));
const STATEMENTS = [
  ['insert', 'insert_request_log'],
  ['claim', 'INSERT INTO idempotency_record'],
  ['store', 'UPDATE idempotency_record SET answer'],
  ['settle', "SET state = 'settled'"],
  ['issue', 'WITH parents AS MATERIALIZED'],
];
let seen = 0;
let faults = 0;

const trace = (text) => plan.trace && real.writeSync(2, `trace: ${text}\n`);
const die = () => {
  process.kill(process.pid, 'SIGKILL');
  // The signal is on its way: nothing more may happen.
  for (;;);
};

/** Runs the system's own deed, worse when it is the planned one. */
function at(point, deed, short = deed) {
  if (point !== plan.at || ++seen < (plan.nth ?? 1)) return deed();
  if (plan.do === 'kill-before') die();
  if (plan.do === 'kill-after') {
    deed();
    die();
  }
  if (plan.do === 'short') return short();
  if (/^E[A-Z]+$/.test(plan.do) && faults++ < (plan.times ?? 1)) {
    throw Object.assign(new Error(`${plan.do}: injected`), { code: plan.do });
  }
  return deed();
}

fs.writeSync = (fd, bytes, ...rest) => {
  const [offset = 0] = rest;
  const lines = Buffer.isBuffer(bytes) ? bytes.toString('latin1', offset) : '';
  // Several calls' lines may go in one write.
  const points = [...lines.matchAll(/^v1 [0-9a-f]{8} \{"t":"([BEUR])"/gm)].map(
    ([, kind]) => `append:${kind}`,
  );
  if (points.length === 0) return real.writeSync(fd, bytes, ...rest);
  const planned = points.filter((point) => point === plan.at).length;
  seen += Math.max(planned - 1, 0);
  const whole = () => real.writeSync(fd, bytes, ...rest);
  const part = () => real.writeSync(fd, bytes, offset, Math.min(50, bytes.length - offset));
  const count = at(planned > 0 ? plan.at : points[0], whole, part);
  for (const point of points) trace(point.replace(':', ' '));
  return count;
};
fs.openSync = (path, ...rest) => {
  const open = () => real.openSync(path, ...rest);
  return isJournalFile(path) && !String(path).endsWith('/00000001.log') ? at('rotate', open) : open();
};
fs.unlinkSync = (path) => {
  const unlink = () => real.unlinkSync(path);
  return isJournalFile(path) ? at('unlink', unlink) : unlink();
};

let held = [];
process.on('SIGUSR2', () => {
  const now = held;
  held = [];
  for (const go of now) go();
});
fs.fdatasync = (fd, done) => {
  trace('sync begin');
  const finish = (error) => {
    trace('sync end');
    done(error);
  };
  if (plan.at === 'sync' && plan.do === 'hold') {
    held.push(() => real.fdatasync(fd, finish));
    trace('sync held');
    return;
  }
  try {
    at('sync', () => real.fdatasync(fd, finish));
  } catch (error) {
    process.nextTick(finish, error);
  }
};
syncBuiltinESMExports();

const { writeHead } = ServerResponse.prototype;
ServerResponse.prototype.writeHead = function (...args) {
  const deed = () => writeHead.apply(this, args);
  // Without a socket it is no response to a client: src/proxy/exchange/response-writer.ts tries what Node does.
  if (this.socket === null) return deed();
  return at(args[0] === 200 && this.req.url.endsWith('/oauth/token') ? 'token' : 'head', deed);
};
const { close } = Server.prototype;
Server.prototype.close = function (...args) {
  const deed = () => close.apply(this, args);
  // The lock of DATA_DIR listens too, on a path.
  return typeof this.address() === 'string' ? deed() : at('close', deed);
};
for (const name of ['write', '_writeGeneric']) {
  const method = Socket.prototype[name];
  Socket.prototype[name] = function (...args) {
    if (name === '_writeGeneric') {
      if (this.server) trace('wire');
      return method.apply(this, args);
    }
    const [bytes] = args;
    const statement = Buffer.isBuffer(bytes) && STATEMENTS.find(([, text]) => bytes.includes(text));
    return statement ? at(statement[0], () => method.apply(this, args)) : method.apply(this, args);
  };
}
