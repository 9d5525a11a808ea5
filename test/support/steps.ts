import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterFile } from './after-file.js';

/** A work of `test/support/step-thread.ts`. */
export interface Work {
  /** URL of a module, and the name of one of its functions. */
  module: string;
  name: string;
  args: unknown[];
}

/** `steps`: executed blocks of code; ten bytes that a native function looks at count as one. */
export interface Counted<T> {
  steps: number;
  result: T;
}

let thread: Worker | null = null;
afterFile(async () => {
  await thread?.terminate();
});

/**
 * Runs a function of a module in a thread that counts what the function executes: the same number (but for what is done once),
 * however busy the machine is. Counting makes it several times slower. One call at a time.
 *
 * @param module its URL
 */
export async function countSteps<T>(
  module: string,
  name: string,
  ...args: unknown[]
): Promise<Counted<Awaited<T>>> {
  thread ??= new Worker(new URL('./step-thread.js', import.meta.url), { execArgv: [] }).once(
    'exit',
    () => (thread = null),
  );
  const counted = once(thread, 'message');
  thread.postMessage({ module, name, args } satisfies Work);
  const [message] = (await counted) as [Counted<Awaited<T>>];
  return message;
}
