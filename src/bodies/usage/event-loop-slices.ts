/** Work per tick of the event loop, so that a call waits for some milliseconds at most. */
const SLICE_MS = 5;

const waiting: (() => void)[] = [];

/**
 * Runs work that takes up to some milliseconds in a later tick of the event loop: in order, and as much in one tick as
 * fits into a slice, however many calls end at the same time.
 */
export function inSlices<T>(work: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const run = () => {
      try {
        resolve(work());
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    };
    if (waiting.push(run) === 1) setImmediate(runSlice);
  });
}

function runSlice(): void {
  const end = performance.now() + SLICE_MS;
  let done = 0;
  while (done < waiting.length && (done === 0 || performance.now() < end)) waiting[done++]!();
  waiting.splice(0, done);
  if (waiting.length > 0) setImmediate(runSlice);
}
