import { DataSource } from 'typeorm';
import { SUBJECT_TYPES } from '../../src/audit/record-change.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { TeamGroup } from '../../src/groups/group.entity.js';
import { Team } from '../../src/teams/team.entity.js';
import { runHere } from '../cli/run-here.js';
import { addToApp } from '../support/app-modules.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { Quota } from './quotas/quota.entity.js';
import { quotasCommand } from './quotas/quotas.command.js';
import { QuotasModule } from './quotas/quotas.module.js';

addToApp(QuotasModule);

let database: TestDatabase;
let postern: TestGateway;
beforeAll(async () => {
  database = await createDatabase();
  postern = await startTestGateway({}, database);
});
afterAll(async () => {
  // Known to the process: the next test file of this worker must not see it.
  SUBJECT_TYPES.delete('quota');
  await postern.stop();
  await database.drop();
});

const quotas = (method = 'GET', path = '', body?: object, token = ADMIN_TOKEN) =>
  fetch(`${postern.url}/admin/v1/quotas${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });

it('stores and lists quotas, in a gateway that has no code for them', async () => {
  const { data } = await postern.admin<{ data: { id: string }[] }>('GET', '/teams');
  const id = data[0]!.id;
  const stored = await quotas('PUT', `/${id}`, { tokens_per_day: 5 });
  expect([stored.status, await stored.json()]).toEqual([200, { team_id: id, tokens_per_day: 5 }]);
  expect(await (await quotas()).json()).toEqual({ data: [{ team_id: id, tokens_per_day: 5 }] });
});

it('records each change in the audit log', async () => {
  const { data } = await postern.admin<{ data: { id: string }[] }>('GET', '/teams');
  await quotas('PUT', `/${data[0]!.id}`, { tokens_per_day: 6 });
  const audit = await postern.admin<{ data: object[] }>('GET', '/audit?subject_type=quota');
  expect(audit.data).toMatchObject([
    {
      action: 'changed',
      subject_name: 'default',
      before: { tokens_per_day: 5 },
      after: { tokens_per_day: 6 },
    },
    { action: 'created', subject_name: 'default', before: null },
  ]);
});

it('requires the admin token, validates the body, and reports errors in the format of the admin API', async () => {
  expect((await quotas('GET', '', undefined, 'wrong-token-0123456789')).status).toBe(401);
  const wrong = await quotas('PUT', '/01890a5d-ac96-774b-bcce-b302099a8057', { tokens_per_day: -1 });
  expect(wrong.status).toBe(400);
  expect(await wrong.json()).toMatchObject({
    error: { details: [{ field: 'tokens_per_day', message: 'must be at least 0' }] },
  });
  const unknown = await quotas('PUT', '/01890a5d-ac96-774b-bcce-b302099a8057', { tokens_per_day: 1 });
  expect(unknown.status).toBe(404);
  expect((await quotas('PUT', '/nonsense', { tokens_per_day: 1 })).status).toBe(404);
  expect(await unknown.json()).toMatchObject({ error: { message: 'No team has this ID.' } });
});

it('has a command, on the gateway and over HTTP', async () => {
  const { code, stdout, stderr } = await runHere(
    ['quotas', 'set', 'default', '--tokens-per-day', '7', '--url', postern.url],
    { POSTERN_ADMIN_TOKEN: ADMIN_TOKEN },
    undefined,
    '',
    [quotasCommand],
  );
  expect([code, stderr, stdout]).toEqual([0, '', 'Team default may use 7 tokens a day.\n']);
  expect(await (await quotas()).json()).toMatchObject({ data: [{ tokens_per_day: 7 }] });
});

it('has a migration that makes what its entity says', async () => {
  const options = dataSourceOptions(database.url, { applicationName: 'postern-test', poolSize: 1 });
  const dataSource = await new DataSource({ ...options, entities: [Quota, Team, TeamGroup] }).initialize();
  const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
  await dataSource.destroy();
  expect(upQueries.map(({ query }) => query)).toEqual([]);
  const [table] = await database.query("SELECT obj_description('quota'::regclass) AS about");
  expect(table).toEqual({ about: 'How many tokens a team may use a day.' });
});

it('is in the OpenAPI document', async () => {
  const response = await fetch(`${postern.url}/docs-json`);
  const { paths } = (await response.json()) as { paths: Record<string, unknown> };
  expect(Object.keys(paths)).toEqual(
    expect.arrayContaining(['/admin/v1/quotas', '/admin/v1/quotas/{team_id}']),
  );
});
