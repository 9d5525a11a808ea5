import { timePasses } from '../support/eventually.js';
import { Checkout } from './checkout.js';

const APP = `
let count = 0;
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
  process.on(signal, () => {
    console.log(signal + ' ' + ++count);
    if (count === 1) setTimeout(() => process.exit(3), Number(process.env.END_MS ?? 1500));
    else process.exit(4);
  });
}
console.log('ready ' + process.pid);
setTimeout(() => process.exit(5), 20000); // whatever a failing test forgets
`;

describe('signals to npm start', () => {
  let checkout: Checkout;
  beforeAll(() => (checkout = new Checkout(APP)));
  afterAll(() => checkout.remove('.'));

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'passes %s on once and waits for the end',
    async (signal) => {
      const run = checkout.start();
      await run.until('ready');
      run.child.kill(signal);
      const { code, stdout } = await run.ended;
      expect(code).toBe(3);
      expect(stdout).toContain(`${signal} 1`);
      expect(stdout).not.toContain(`${signal} 2`);
    },
  );

  // Ctrl-C arrives from the terminal and again from npm, which forwards it: the gateway must not see two.
  it('takes two in a row for one Ctrl-C, and a later one for a second', async () => {
    const run = checkout.start('start.mjs', [], { END_MS: '15000' });
    await run.until('ready');
    run.child.kill('SIGINT');
    await run.until('SIGINT 1');
    run.child.kill('SIGINT');
    await timePasses(500, 'two signals so far apart are two requests');
    run.child.kill('SIGINT');
    const { code, stdout } = await run.ended;
    expect(code).toBe(4);
    expect(stdout.match(/SIGINT/g)).toHaveLength(2);
  });

  it("keeps the gateway out of the terminal's process group, so that Ctrl-C comes by one way only", async () => {
    const run = checkout.start();
    await run.until('ready');
    const pid = /ready (\d+)/.exec(run.printed())?.[1];
    expect(() => process.kill(-Number(pid), 0)).not.toThrow(); // it leads a group of its own
    run.child.kill('SIGTERM');
    await run.ended;
  });

  it('reports death by a signal as 128 + n', async () => {
    const run = checkout.start();
    await run.until('ready');
    process.kill(Number(/ready (\d+)/.exec(run.printed())?.[1]), 'SIGKILL');
    expect((await run.ended).code).toBe(137);
  });

  // dash keeps a SIGTERM meant for `npm test` and the like to itself, and nothing passes on -9.
  it('ends the gateway when the npm that started it is gone', async () => {
    const run = checkout.start('start.mjs', [], { npm_lifecycle_event: 'start' }, [
      'sh',
      '-c',
      '"$0" "$@"; true',
    ]);
    await run.until('ready');
    run.child.kill('SIGKILL');
    await run.until('SIGTERM 1');
    await run.ended; // its output closes with the gateway
  });
});
