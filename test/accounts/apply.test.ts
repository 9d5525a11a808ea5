import { ApplyRun } from '../apply/apply-run.js';
import { runHere } from '../cli/run-here.js';
import { ADMIN_TOKEN } from '../support/gateway.js';

const DOCUMENT = `
teams:
  - name: ads
  - name: search
    providers: [openai-search, main, groq]
    default_provider: main
providers:
  - { name: groq, url: https://api.groq.com/openai, secret: { env: SECRET } }
  - { name: openai-search, url: https://api.openai.com, secret: { env: SECRET }, team: search }
routes:
  - { name: main, targets: [{ provider: openai-search }, { provider: groq }] }
keys:
  - { team: search, name: batch, endpoints: own, providers: [openai-search], secret: false }
`;
const UNCHANGED = { code: 0, stderr: '', stdout: 'No changes.\n' };

let run: ApplyRun;
beforeEach(async () => {
  run = await ApplyRun.start();
  run.env = { SECRET: 'sk-0123456789abcdef' };
});
afterEach(() => run.stop());

it('makes teams and their providers, each of which names the other, and then changes nothing', async () => {
  expect(await run.apply(DOCUMENT)).toMatchObject({ code: 0, stderr: '' });
  expect(await run.postern.admin('GET', '/teams/search')).toMatchObject({
    providers: ['openai-search', 'main', 'groq'],
    default_provider: 'main',
  });
  expect(await run.postern.admin('GET', '/providers/openai-search')).toMatchObject({ team: 'search' });
  expect(await run.postern.admin('GET', '/providers/groq')).toMatchObject({ team: null });
  expect(await run.apply(DOCUMENT)).toEqual(UNCHANGED);
});

it('is exported so that it can be applied again, there and to an empty installation', async () => {
  await run.apply(DOCUMENT);
  const env = { POSTERN_URL: run.postern.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
  const { stdout } = await runHere(['export'], env, run.folder);
  expect(await run.apply(stdout)).toEqual(UNCHANGED);
  const other = await ApplyRun.start();
  other.env = run.env;
  const withSecrets = stdout.replaceAll('stored: true', 'env: SECRET');
  expect(await other.apply(withSecrets, ['--secrets-out', 'new.ndjson'])).toMatchObject({ code: 0 });
  const { postern } = other;
  const shown = await runHere(['export'], { ...env, POSTERN_URL: postern.url }, other.folder);
  expect(shown.stdout).toBe(stdout);
  await other.stop();
});

it('changes nothing if a provider would be for another team than the one that goes to it by default', async () => {
  await run.apply(DOCUMENT);
  const moved = DOCUMENT.replace('team: search }\nroutes', 'team: ads }\nroutes');
  const { code, stderr } = await run.apply(moved);
  expect([code, stderr]).toEqual([1, expect.stringContaining('main would be for another team')]);
  expect(await run.postern.admin('GET', '/providers/openai-search')).toMatchObject({ team: 'search' });
});
