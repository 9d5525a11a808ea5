// The thread of countSteps(). V8 counts the blocks only of code that it compiles after this began: hence a thread.
import { type Profiler, Session } from 'node:inspector';
import { parentPort } from 'node:worker_threads';
import type { Counted, Work } from './steps.js';

/** A native search, copy or conversion takes for ten bytes about as long as a block of code. */
const BYTES_PER_STEP = 10;
/** An error has a stack: 3 to 10 µs. */
const STEPS_PER_ERROR = 300;

let bytes = 0;

type Method = (this: never, ...args: never[]) => unknown;

/** @param size bytes that a call of the method looks at */
function count<T>(owner: object, name: string, size: (self: T, args: unknown[], result: unknown) => number) {
  const method = Reflect.get(owner, name) as Method;
  Reflect.set(owner, name, function (this: T, ...args: unknown[]) {
    const result = method.apply(this as never, args as never[]);
    bytes += size(this, args, result);
    return result;
  });
}

interface Sized {
  length: number;
}
const ofSelf = (self: Sized) => self.length;
const ofResult = (_self: unknown, _args: unknown[], result: unknown) => (result as Sized).length;
const upToFound = (self: Sized, args: unknown[], found: unknown) =>
  (found === -1 ? self.length : (found as number)) - (typeof args[1] === 'number' ? args[1] : 0);

const BUFFERS = Buffer.prototype as object;
count(BUFFERS, 'indexOf', upToFound);
count(BUFFERS, 'toString', ofResult);
count(BUFFERS, 'copy', (_self, _args, copied) => copied as number);
count(Buffer, 'concat', ofResult);
count(Buffer, 'from', ofResult);
count(String.prototype, 'indexOf', upToFound);
for (const name of ['lastIndexOf', 'includes', 'split', 'replace', 'replaceAll', 'toLowerCase', 'trimEnd'])
  count(String.prototype, name, ofSelf);
// Also of `test`, `match` and those above. One that must match at the start gives up there.
count<RegExp>(RegExp.prototype, 'exec', ({ source }, [text], found) => {
  if (found !== null) return (found as RegExpExecArray).index + (found as RegExpExecArray)[0].length;
  return source.startsWith('^') ? 0 : String(text).length;
});
count(JSON, 'parse', (_self, [text]) => (text as string).length);
globalThis.Error = class extends Error {
  constructor(...args: ConstructorParameters<ErrorConstructor>) {
    super(...args);
    bytes += STEPS_PER_ERROR * BYTES_PER_STEP;
  }
} as ErrorConstructor;

const session = new Session();
session.connect();

/** The counts since the last call. */
function executed(): number {
  let blocks = 0;
  session.post(
    'Profiler.takePreciseCoverage',
    (error, { result }: Profiler.TakePreciseCoverageReturnType) => {
      if (error !== null) throw error;
      for (const { url, functions } of result)
        if (url.startsWith('file:'))
          for (const { ranges } of functions) for (const { count } of ranges) blocks += count;
    },
  );
  return blocks;
}

session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

parentPort!.on('message', ({ module, name, args }: Work) => {
  void (async () => {
    const { [name]: work } = (await import(module)) as Record<string, (...args: unknown[]) => unknown>;
    const own = args.map((arg) => (arg instanceof Uint8Array ? Buffer.from(arg) : arg));
    executed();
    bytes = 0;
    const result = await work!(...own);
    const steps = executed() + Math.round(bytes / BYTES_PER_STEP);
    parentPort!.postMessage({ steps, result } satisfies Counted<unknown>);
  })();
});
