import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { runHere } from './run-here.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());

const run = (...args: string[]) =>
  runHere(['tokens', ...args], { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN });

const teamsWith = async (token: string) =>
  (await fetch(`${gateway.url}/admin/v1/teams`, { headers: { authorization: `Bearer ${token}` } })).status;

it('are created, listed and revoked on the command line', async () => {
  const made = await run('create', '--name', 'jane', '--role', 'team', '--teams', 'default', '--quiet');
  expect(made).toMatchObject({ code: 0 });
  const token = made.stdout.trim();
  expect(token).toMatch(/^pta_[0-9A-Za-z]{38}$/);
  expect(await teamsWith(token)).toBe(200);

  const listed = await run('list');
  expect(listed.stdout).toMatch(new RegExp(`${token.slice(0, 12)}\\s+jane\\s+team\\s+default`));
  expect(listed.stdout).not.toContain(token);

  const revoked = await run('revoke', 'jane', '--yes');
  expect(revoked).toMatchObject({ code: 0, stdout: `Revoked token jane (${token.slice(0, 12)}…).\n` });
  expect(await teamsWith(token)).toBe(401);
  expect(await run('revoke', 'jane', '--yes')).toMatchObject({ code: 1 });
});

it('say what is wrong', async () => {
  const { code, stderr } = await run('create', '--name', 'x', '--role', 'root');
  expect([code, stderr]).toEqual([1, expect.stringContaining('admin, viewer, lead, team or metrics')]);
});
