import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TrustFailures } from '../../src/identity/trusts/trust-failures.service.js';
import { exchange } from '../identity/exchanges.js';
import { FakeIssuer } from '../identity/fake-issuer.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { runHere } from './run-here.js';

let issuer: FakeIssuer;
let gateway: TestGateway;
beforeAll(async () => {
  issuer = await FakeIssuer.start();
  gateway = await startTestGateway({ GATEWAY_URL: 'https://gateway.example.com' });
});
afterAll(async () => {
  await gateway.stop();
  await issuer.stop();
});

const remote = (line: string, input = '') =>
  runHere(line.split(' '), { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN }, undefined, input);

it('trusts are created, shown, tested, changed and deleted, for a key without a secret', async () => {
  const key = await remote('keys create --team default --name ci --no-secret');
  expect(key).toMatchObject({ code: 0, stderr: '' });
  expect(key.stdout).toMatch(/^Created key default\/ci \([-0-9a-f]+\)\.$/m);
  expect(key.stdout).toContain('trusts create');
  expect((await remote('keys list')).stdout).toMatch(/^- +default\/ci/m);

  const file = join(gateway.dataDir, 'keys.json');
  writeFileSync(file, JSON.stringify({ keys: [issuer.publicJwk] }));
  const created = await remote(
    `trusts create job --key default/ci --preset github --issuer ${issuer.url} --jwks ${file} --repository-id 7 --ref refs/heads/main refs/tags/* --claim fork=false --claim ref_protected="true"`,
  );
  expect(created).toMatchObject({ code: 0, stderr: '' });
  expect(created.stdout).toContain('need the audience https://gateway.example.com');
  const shown = await remote('trusts show job');
  expect(shown.stdout).toMatch(/^claim ref +refs\/heads\/main, refs\/tags\/\*$/m);
  expect(shown.stdout).toMatch(/^claim fork +false$/m);
  expect(shown.stdout).toMatch(/^claim ref_protected +"true"$/m);
  // As GitLab has it: text.
  const { claims: stored } = await gateway.admin<{ claims: object }>('GET', '/trusts/job');
  expect(stored).toMatchObject({ fork: [false], ref_protected: ['true'] });
  expect((await remote('trusts list')).stdout).toMatch(/^job +default\/ci +enabled +github/m);

  const claims = {
    aud: 'https://gateway.example.com',
    repository_id: '7',
    ref: 'refs/tags/v1',
    fork: false,
    ref_protected: 'true',
  };
  const good = await issuer.sign({ ...claims, event_name: 'push' });
  const bad = await issuer.sign({ ...claims, event_name: 'pull_request_target' });
  const accepted = await remote('trusts test job', good);
  expect(accepted.stdout).toMatch(/^signature +met\n/m);
  expect(accepted.stdout).toMatch(/\n\nIt would be accepted, as job\.\n$/);
  const rejected = await remote('trusts test job', bad);
  expect(rejected.stdout).toMatch(/^claims\.ref +met$/m);
  expect(rejected.stdout).toMatch(/^claims\.event_name +not met: the claim event_name does not have an/m);
  expect(rejected.stdout).toMatch(/\n\nIt would be rejected\.\n$/);
  expect((await exchange(gateway, 'job', good)).status).toBe(200);
  expect((await exchange(gateway, 'job', bad)).status).toBe(400);
  await gateway.gateway.app.get(TrustFailures).write();
  expect((await remote('trusts failures job')).stdout).toContain('pull_request_target');

  expect((await remote('trusts update job --token-minutes 5')).stdout).toContain('Updated trust job');
  expect((await exchange(gateway, 'job', good)).expiresIn).toBe(300);
  expect((await remote('trusts disable job')).stdout).toBe('Trust job is disabled.\n');
  expect((await remote('trusts test job', good)).stdout).toMatch(
    /^enabled +not met: the trust is disabled\n/m,
  );
  expect((await remote('trusts enable job')).stdout).toBe('Trust job is enabled.\n');
  expect((await remote('keys disable default/ci')).code).toBe(0);
  expect((await remote('trusts test job', good)).stdout).toContain('its key or its team is disabled');
  const create = (options: string) => remote(`trusts create other --key default/ci ${options}`);
  expect(await create('--preset github --claim repository=a/b')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^error: --claim must name repository_id/) as string,
  });
  expect((await create('--issuer https://a.example --claim sub=*')).stderr).toMatch(/^error: --claim: sub: /);
  expect((await create('--issuer https://a.example')).stderr).toMatch(/^error: --claim: give a condition/);
  expect((await create('--issuer https://a.example --claim sub=a --cidr x')).stderr).toMatch(
    /^error: --cidr must be/,
  );
  expect((await remote('trusts update job')).stderr).toContain('nothing to change');
  expect((await remote('trusts update job --claim repository_id=7 ref=a constructor=b')).code).toBe(0);
  expect((await remote('trusts show job')).stdout).toMatch(/^claim constructor +b$/m);
  expect((await remote('trusts update job --claim repository_id=7 ref=a __proto__=b')).stderr).toMatch(
    /^error: --claim must not name a claim __proto__/,
  );
  expect((await remote('trusts delete job --yes')).stdout).toBe('Deleted trust job.\n');
});
