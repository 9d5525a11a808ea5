import { ADMIN_TOKEN, startTestGateway } from '../support/gateway.js';
import { read } from '../docs/pages.js';
import { keepKeys } from './keep-keys.js';

it('is the example of the guide', () => {
  const shown = read('test/client/keep-keys.ts').replace('../../src/client/index.js', 'postern/client');
  expect(read('docs/guides/admin-api-client.md')).toContain(`\`\`\`ts\n${shown}\`\`\``);
});

it('issues the keys that are missing and disables the others', async () => {
  const gateway = await startTestGateway();
  await gateway.admin('POST', '/teams', { name: 'search' });
  const keep = (...names: string[]) => keepKeys(gateway.url, ADMIN_TOKEN, 'search', names);
  const first = await keep('a', 'b');
  expect([...first.keys()]).toEqual(['a', 'b']);
  expect([...(await keep('b', 'c')).keys()]).toEqual(['c']);
  const { data } = await gateway.admin<{ data: { name: string; disabled: boolean }[] }>(
    'GET',
    '/keys?team=search',
  );
  const disabled = Object.fromEntries(data.map(({ name, disabled }) => [name, disabled]));
  expect(disabled).toEqual({ a: true, b: false, c: false });
  await gateway.stop();
});
