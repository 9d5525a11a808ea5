import { runCli } from '../cli/run-cli.js';
import { ADMIN_TOKEN, startTestGateway } from '../support/gateway.js';

it('"postern export" writes ten thousand keys, in little memory', async () => {
  const postern = await startTestGateway();
  await postern.admin('POST', '/teams', { name: 'many' });
  await postern.database.query(`
    WITH key AS (
      INSERT INTO gateway_key (id, team_id, name, models)
      SELECT ('018f0000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, team.id, 'key ' || n, '{gpt-5*}'
      FROM team, generate_series(1, 10000) AS n WHERE team.name = 'many' RETURNING id)
    INSERT INTO gateway_key_secret (id, key_id, prefix, digest)
    SELECT gen_random_uuid(), id, 'ptn_' || left(md5(id::text), 8), decode(md5(id::text) || md5(id::text), 'hex') FROM key`);
  const { stdout: text, stderr } = await runCli(['export'], {
    ...{ POSTERN_URL: postern.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN },
    NODE_OPTIONS: '--max-old-space-size=64',
  });
  expect(stderr).toBe('');
  expect(text.match(/^ {2}- team: /gm)!.length).toBe(10_001);
  await postern.stop();
});
