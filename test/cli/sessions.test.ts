import { signIn } from '../admin/browser.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { runHere } from './run-here.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.stop());

const run = (...args: string[]) =>
  runHere(args, { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN });
const sessions = async () =>
  (JSON.parse((await run('sessions', 'list', '--json')).stdout) as { data: { id: string }[] }).data;

it('are listed and ended on the command line, one or all of a user', async () => {
  for (let i = 0; i < 3; i++) await signIn(gateway, ADMIN_TOKEN);
  const [newest] = await sessions();
  const listed = await run('sessions', 'list', '--actor', 'admin-token');
  expect(listed.stdout).toMatch(new RegExp(`admin-token\\s+admin\\s.*${newest!.id}`));
  expect(await run('sessions', 'list', '--actor', 'token:nobody')).toMatchObject({
    stdout: 'No sessions found.\n',
  });
  const one = await run('sessions', 'end', newest!.id, '--yes');
  expect(one).toMatchObject({ code: 0, stdout: `Ended session ${newest!.id}.\n` });
  expect(await run('sessions', 'end', newest!.id, '--yes')).toMatchObject({ code: 1 });
  const all = await run('sessions', 'end', '--actor', 'admin-token', '--yes', '--json');
  expect(JSON.parse(all.stdout)).toEqual({ ended: 2 });
  expect(await sessions()).toEqual([]);
  const again = await run('sessions', 'end', '--actor', 'admin-token', '--yes');
  expect(again.stdout).toBe('Ended 0 sessions of admin-token.\n');
});

it.each([[[]], [['01890a5d-ac96-774b-bcce-b302099a8057', '--actor', 'admin-token']]])(
  'end %j: either an ID or a user must be given',
  async (given) => {
    const { code, stderr } = await run('sessions', 'end', ...given, '--yes');
    expect([code, stderr]).toEqual([1, 'error: give the ID of a session, or --actor with a user\n']);
  },
);

it('the audit log is filtered by sign-ins', async () => {
  const { code, stdout } = await run('audit', 'list', '--action', 'signed_in', '--subject-type', 'session');
  expect(code).toBe(0);
  expect(stdout).toMatch(/admin-token\s+signed_in\s+session admin-token/);
});
