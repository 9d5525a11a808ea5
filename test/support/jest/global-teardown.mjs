import { once } from 'node:events';
import { rmSync } from 'node:fs';

export default async function globalTeardown() {
  const { keeper } = globalThis;
  if (keeper.exitCode === null && keeper.signalCode === null) {
    const ended = once(keeper, 'exit');
    if (keeper.connected) keeper.send('over');
    await ended;
  }
  if (keeper.exitCode === 0) return;
  // Without it there is no second try, which would hide this.
  if (process.env.POSTERN_TEST_FAILURES) rmSync(process.env.POSTERN_TEST_FAILURES, { force: true });
  const how = keeper.signalCode ?? `exit code ${keeper.exitCode}`;
  throw new Error(`the Postgres of the tests did not end well (${how})`);
}
