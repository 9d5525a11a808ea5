// Every way a run may be told to end leads to the same cleaning up, and no run lasts for ever.
import { constants } from 'node:os';

/** Runs `task`, then whatever `close` does. Sets the exit code. */
export async function withLifetime(longestMs, task, close) {
  let end;
  const ended = new Promise((_, reject) => (end = reject));
  ended.catch(() => {}); // told below
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () =>
      end(Object.assign(new Error(`ended by ${signal}`), { exitCode: 128 + constants.signals[signal] })),
    );
  }
  process.on('uncaughtException', end);
  process.on('unhandledRejection', end);
  process.stdout.on('error', end);
  const timer = setTimeout(() => end(new Error(`not done after ${longestMs / 60_000} minutes`)), longestMs);
  let exitCode = 0;
  try {
    exitCode = (await Promise.race([task(), ended])) ?? 0;
  } catch (error) {
    exitCode = error.exitCode ?? 1;
    if (error.code !== 'EPIPE') process.stderr.write(`\n${error.exitCode ? error.message : error.stack}\n`);
  }
  clearTimeout(timer);
  await close().catch((error) => {
    exitCode ||= 1;
    process.stderr.write(`Not everything was put away: ${error.message}\n`);
  });
  process.exit(exitCode);
}
