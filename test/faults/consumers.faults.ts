import { join } from 'node:path';
import { insertRow } from '../request-log/rows.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { bareEnvironment, Process } from '../support/process.js';
import { Workplace } from '../support/workplace.js';

const KILLS = 5;

let database: TestDatabase;
let running: Process[];
const workplaces: Workplace[] = [];
beforeEach(async () => {
  database = await createDatabase();
  // Without a key: a row that came twice is there twice.
  await database.query('CREATE TABLE book (id uuid)');
  running = [];
});
afterEach(async () => {
  for (const workplace of workplaces) await workplace.remove();
  await database.drop();
});

async function start(): Promise<void> {
  const workplace = await Workplace.make();
  workplaces.push(workplace);
  const env = {
    ...bareEnvironment(),
    PORT: '0',
    DATABASE_URL: database.url,
    DATA_DIR: workplace.dataDir,
    LOG_LEVEL: 'error',
  };
  const script = join(__dirname, 'consumer-gateway.mjs');
  const started = new Process(process.execPath, [script], { cwd: workplace.folder, env });
  running.push(started);
  await started.until(/ready on/);
}

it('gives each row once, whichever of two gateways is killed in the middle of a transaction', async () => {
  await start();
  await start();
  const ids: string[] = [];
  for (let kills = 0; kills < KILLS; kills++) {
    const seen = running.map(({ stdout }) => stdout.length);
    for (let i = 0; i < 20; i++) ids.push(await insertRow(database, new Date()));
    const index = await eventually(() => {
      const at = running.findIndex(({ stdout }, i) => stdout.slice(seen[i]).includes('written'));
      return at >= 0 && { at };
    });
    const [leader] = running.splice(index.at, 1) as [Process];
    await leader.kill();
    await start();
  }
  const stored = async () =>
    (await database.query<{ id: string }>('SELECT id FROM book ORDER BY id')).map(({ id }) => id);
  await eventually(async () => (await stored()).length >= ids.length);
  expect(await stored()).toEqual(ids.sort());
}, 300_000);
