import { resolve } from 'node:path';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { setPatience } from '../support/patience.js';
import { bareEnvironment, preloaded, Process, runBuilt } from '../support/process.js';
import { TcpForwarder } from '../support/tcp-forwarder.js';
import { Workplace } from '../support/workplace.js';

let database: TestDatabase;
let workplace: Workplace;
let forwarder: TcpForwarder;
let sent = '';
beforeAll(async () => {
  database = await createDatabase();
  workplace = await Workplace.make();
  forwarder = await TcpForwarder.to(database.url, () => (bytes) => (sent += bytes.toString('latin1')));
  await forwarder.open();
});
afterAll(async () => {
  await workplace.remove();
  await forwarder.close();
  await database.drop();
});

/** The time limits of statements that a command sets in its sessions, in milliseconds. */
async function timeouts(run: (args: string[], env: Record<string, string>) => Process): Promise<Set<string>> {
  sent = '';
  const env = { DATABASE_URL: forwarder.url, DATA_DIR: workplace.dataDir };
  const command = run(['keys', 'list'], env);
  expect([await command.ended, command.stderr]).toEqual([{ code: 0, signal: null }, '']);
  // Its one parameter, in text, with its length.
  return new Set([...sent.matchAll(/\0\x01\0\0\0[\x04-\x06](\d{4,6})/g)].map(([, ms]) => ms!));
}

it('is that of production in a process that no test has changed, whatever its environment, and longer in others', async () => {
  const program = resolve(__dirname, '../../dist/src/cli/start.js');
  const asShipped = await timeouts(
    (args, env) =>
      new Process(process.execPath, [program, ...args], {
        cwd: workplace.folder,
        env: { ...bareEnvironment(), ...preloaded(program).env, ...env },
      }),
  );
  expect(asShipped).toContain('5000');
  const inTest = await timeouts((args, env) => runBuilt('cli/start', args, { cwd: workplace.folder, env }));
  expect(inTest).toEqual(new Set([...asShipped].map((ms) => String(Number(ms) * 20))));
  setPatience(0.5);
  const impatient = await timeouts((args, env) =>
    runBuilt('cli/start', args, { cwd: workplace.folder, env }),
  );
  expect(impatient).toContain('2500');
});
