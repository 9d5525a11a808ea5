// The same clean-up for every way in which a run may end, and a bound for its duration.
import { constants } from 'node:os';
import { startPostgres } from './database.mjs';
import { pinSelf, planCores } from './pinning.mjs';
import { Workplace } from './workplace.mjs';

/** Runs `task` with a folder, cores and a Postgres for the run, and removes everything afterwards. Sets the exit code. */
export async function withWorkplace(longestMs, task, { postgresSettings = {}, isPinned = true } = {}) {
  let workplace = null;
  const run = async () => {
    const cores = planCores();
    workplace = await Workplace.make(cores);
    if (isPinned) pinSelf(cores.load);
    return task({ workplace, postgres: await startPostgres(workplace, postgresSettings) });
  };
  await withLifetime(longestMs, run, async () => workplace?.close());
}

async function withLifetime(longestMs, task, close) {
  let end;
  const ended = new Promise((_, reject) => (end = reject));
  ended.catch(() => {}); // reported below
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
    process.stderr.write(`Not everything was removed: ${error.message}\n`);
  });
  process.exit(exitCode);
}
