import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { startTestGateway, type TestGateway, ADMIN_TOKEN } from '../support/gateway.js';
import { runHere } from './run-here.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());

const run = (...args: string[]) =>
  runHere(['database', 'regressions', ...args], {
    POSTERN_URL: gateway.url,
    POSTERN_ADMIN_TOKEN: ADMIN_TOKEN,
  });

/** Notes a loss on the server that runs, as the processes do. */
async function lose(number: number, state: string): Promise<string> {
  const id = uuidv7();
  const entry = {
    id: '01890a5d-ac96-774b-bcce-b302099a8057',
    at: '2026-11-22T06:27:13.629Z',
    actor: 'sso:jane',
    action: 'rotated',
    subjectType: 'key',
    subjectId: randomUUID(),
    subjectName: 'search/ci',
  };
  const runs = { [randomUUID()]: { surviving: '4120', acknowledged: '4187' } };
  await gateway.database.query(
    `INSERT INTO database_regression (id, server, number, lost_from, gap_seconds, state, rows_put_back, lost_entries, runs)
     VALUES ($1, pg_postmaster_start_time(), $2, '2026-11-22T06:27:12Z', 12, $3, 67, $4, $5)`,
    [id, number, state, JSON.stringify([entry]), JSON.stringify(runs)],
  );
  return id;
}

it('are listed, shown, put back and dismissed on the command line', async () => {
  expect(await run('list')).toMatchObject({ code: 0, stdout: 'No losses found.\n' });
  const [first, second] = [await lose(1, 'waiting'), await lose(2, 'waiting')];
  const listed = await run('list', '--wide');
  expect(listed.stdout).toMatch(
    new RegExp(`waiting\\s+2026-11-22\\S* 06:27:12.*12\\s+67\\s+0\\s+1\\s+${second}`),
  );
  const page = JSON.parse((await run('list', '--limit', '1', '--json')).stdout) as {
    data: { id: string }[];
    next_cursor: string;
  };
  expect(page.data).toHaveLength(1);
  const next = await run('list', '--cursor', page.next_cursor, '--json');
  expect([page.data[0]!.id, (JSON.parse(next.stdout) as typeof page).data[0]!.id]).toEqual([second, first]);
  const shown = await run('show', second);
  expect(shown).toMatchObject({ code: 0 });
  expect(shown.stdout).toMatch(/run\s+\S+: 4120 of 4187/);
  expect(shown.stdout).toMatch(/to repeat\s+2026-11-22.*key search\/ci rotated by sso:jane/);

  // The processes follow the latest one.
  const older = await run('put-back', first);
  expect([older.code, older.stderr]).toEqual([1, expect.stringContaining('or has lost more')]);
  const back = await run('put-back', second);
  expect(back).toMatchObject({ code: 0, stdout: expect.stringContaining('It is put back now.') as string });
  const decided = await run('dismiss', second);
  expect([decided.code, decided.stderr]).toEqual([1, expect.stringContaining('waits for no decision')]);
  expect(await run('dismiss', first)).toMatchObject({ code: 0, stdout: 'Nothing is put back.\n' });
  const after = JSON.parse((await run('show', first, '--json')).stdout) as { state: string };
  expect(after.state).toBe('dismissed');
  expect(await run('show', randomUUID())).toMatchObject({ code: 1 });
});
