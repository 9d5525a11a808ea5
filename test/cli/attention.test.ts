import { FakeProvider } from '../../src/testing/fake-provider.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { runHere } from './run-here.js';

let provider: FakeProvider;
let gateway: TestGateway;
beforeAll(async () => {
  provider = await FakeProvider.start();
  gateway = await startTestGateway();
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

const remote = (line: string) =>
  runHere(line.split(' '), { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN });
const attention = () => remote('attention --exit-code');
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

// In this order: each adds to what the one before has left.
describe('postern attention', () => {
  it('says what to do first in a new installation, and ends with 2 if it is asked to', async () => {
    const { code, stdout, stderr } = await attention();
    expect(stdout).toMatch(
      /^critical {2}no provider can take calls: they get 503\n\nSee more:\n {2}\S*postern providers add --help\n$/,
    );
    expect([code, stderr]).toEqual([2, '']);
    expect((await remote('attention')).code).toBe(0);
  });

  it('says that all is well', async () => {
    await gateway.admin('POST', '/providers', { name: 'local', url: provider.url, secret: null });
    expect(await attention()).toMatchObject({ code: 0, stdout: 'All well: nothing needs you now.\n' });
  });

  it('lists what needs somebody, with names and commands that work', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f'])
      await gateway.admin('POST', '/keys', { team: 'default', name, expires_at: inDays(2) });
    await gateway.database.query(
      `INSERT INTO unpriced_model (provider, model, day)
       VALUES ('local', E'new\\u001b[2Jmodel', (now() AT TIME ZONE 'UTC')::date)`,
    );
    const { code, stdout } = await attention();
    // Nothing of it is critical.
    expect(code).toBe(0);
    const [lines, more] = stdout.split('\n\nSee more:\n');
    expect(lines!.split('\n')).toEqual([
      expect.stringMatching(
        /^warning {2}6 keys expire within 7 days: (default\/\w, ){4}default\/\w and 1 more$/,
      ),
      'warning  1 model was called that has no price: local/new?[2Jmodel',
    ]);
    const commands = more!.trim().split(/\n +/);
    expect(commands).toHaveLength(2);
    for (const command of commands)
      expect([command, (await remote(command.replace(/^\S*postern /, ''))).code]).toEqual([command, 0]);
    expect(JSON.parse((await remote('attention --json')).stdout)).toEqual(
      await gateway.admin('GET', '/attention'),
    );
  });
});
