import { DataSource } from 'typeorm';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { migrate } from '../../src/database/migrate.js';
import { MIGRATIONS } from '../../src/database/migrations.js';
import { createDatabase } from '../support/database.js';

const WEBHOOK = 'https://hooks.example.com:8443/canary/path?…';
const SINK = 'https://rows.example.com/canary';

it('removes the paths of URLs, and text of responses, that an older version has stored in clear', async () => {
  const database = await createDatabase({ empty: true });
  const upTo = MIGRATIONS.findIndex(({ name }) => name.startsWith('ShownUrls'));
  const dataSource = await new DataSource({
    ...dataSourceOptions(database.url, { applicationName: 'postern-test', poolSize: 1 }),
    migrations: MIGRATIONS.slice(0, upTo),
  }).initialize();
  await dataSource.runMigrations();
  await dataSource.destroy();

  const webhook = (url: string) =>
    database.query(
      `INSERT INTO webhook (id, shown_url, events, format, sealed)
       VALUES (gen_random_uuid(), $1, '{key.expiring}', 'standard', '')`,
      [url],
    );
  const sink = (kind: string, url: string) =>
    database.query(
      `INSERT INTO sink (id, name, kind, shown_url, sealed, recorded_until, recorded_until_id, last_error, last_error_at)
       VALUES (gen_random_uuid(), $1, $1, $2, '', now(), gen_random_uuid(), 'canary', now())`,
      [kind, url],
    );
  const audit = (type: string, name: string, before: object | null, after: object | null) =>
    database.query(
      `INSERT INTO audit_log (id, actor, action, subject_type, subject_id, subject_name, before, after)
       VALUES (gen_random_uuid(), 'me', 'changed', $1, gen_random_uuid(), $2, $3, $4)`,
      [type, name, before && JSON.stringify(before), after && JSON.stringify(after)],
    );
  for (const url of [WEBHOOK, 'https://hooks.slack.com/…', 'http://127.0.0.1:9/']) await webhook(url);
  await sink('http', SINK);
  await sink('jetstream', 'tls://nats.example.com:4222');
  await audit('webhook', WEBHOOK, null, { id: '1', url: WEBHOOK, events: ['key.expiring'] });
  await audit('webhook', WEBHOOK, { events: ['key.expiring'] }, { events: ['price.missing'] });
  await audit('sink', 'rows', { url: SINK }, { url: 'changed', secret: 'changed' });
  await audit('provider', 'p', { url: 'https://p.example.com/v1' }, null);
  const applied = ['create team a', `create webhook ${WEBHOOK}`, 'update sink rows'];
  await audit('configuration', 'configuration', null, { prune: false, changes: applied });

  await migrate(database.url);
  expect(await database.query('SELECT shown_url FROM webhook ORDER BY 1')).toEqual([
    { shown_url: 'http://127.0.0.1:9/' },
    { shown_url: 'https://hooks.example.com:8443/…' },
    { shown_url: 'https://hooks.slack.com/…' },
  ]);
  expect(await database.query('SELECT shown_url, last_error FROM sink ORDER BY kind')).toEqual([
    { shown_url: 'https://rows.example.com/…', last_error: null },
    { shown_url: 'tls://nats.example.com:4222', last_error: 'canary' },
  ]);
  const name = 'https://hooks.example.com:8443/…';
  expect(await database.query('SELECT subject_name, before, after FROM audit_log ORDER BY at')).toEqual([
    { subject_name: name, before: null, after: { id: '1', url: name, events: ['key.expiring'] } },
    { subject_name: name, before: { events: ['key.expiring'] }, after: { events: ['price.missing'] } },
    {
      subject_name: 'rows',
      before: { url: 'https://rows.example.com/…' },
      after: { url: 'changed', secret: 'changed' },
    },
    { subject_name: 'p', before: { url: 'https://p.example.com/v1' }, after: null },
    {
      subject_name: 'configuration',
      before: null,
      after: { prune: false, changes: ['create team a', `create webhook ${name}`, 'update sink rows'] },
    },
  ]);
  await database.drop();
});
