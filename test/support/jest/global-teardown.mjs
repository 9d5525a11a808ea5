import { once } from 'node:events';

export default async function globalTeardown() {
  const { keeper } = globalThis;
  const ended = once(keeper, 'exit');
  keeper.send('over');
  const [code] = await ended;
  if (code !== 0) throw new Error(`the Postgres of the tests did not end well (exit code ${code})`);
}
