import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CredentialSources } from '../../../src/providers/credentials/credential-sources.service.js';
import { assumed, bearer, jwt } from './clouds.js';
import {
  ANTHROPIC,
  ENTRA,
  GOOGLE,
  KeylessGateway,
  type New,
  OPENAI,
  problemOf,
  PROVIDERS,
  WEB_IDENTITY,
} from './keyless-gateway.js';

const METADATA = '169.254.169.254';
const CONTAINER = { ...WEB_IDENTITY, auth_settings: { credentials: 'container', region: 'eu-central-1' } };
const INSTANCE = { ...WEB_IDENTITY, auth_settings: { credentials: 'instance', region: 'eu-central-1' } };
const OF_MACHINE = { ...GOOGLE, auth_settings: { source: 'metadata' } };
const MANAGED = { ...ENTRA, auth_settings: { source: 'metadata', scope: 'https://x.example/.default' } };
const EACH: [string, New, string][] = [
  ['openai-federation', OPENAI, 'auth.openai.com'],
  ['anthropic-federation', ANTHROPIC, 'api.anthropic.com'],
  ['aws-sigv4', WEB_IDENTITY, 'sts.eu-central-1.amazonaws.com'],
  ['google', GOOGLE, 'sts.googleapis.com'],
  ['oauth2', ENTRA, 'login.microsoftonline.com'],
];

let keyless: KeylessGateway;
let onAws: KeylessGateway;
/** Gives up after a second on a token endpoint that hangs. */
let impatient: KeylessGateway;

beforeAll(async () => {
  const settings = {
    LOG_LEVEL: 'info',
    AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://169.254.169.254/latest/user-data',
  };
  keyless = await KeylessGateway.start(settings);
  onAws = await KeylessGateway.start({ ...settings, CLOUD_IDENTITY: 'aws' }, keyless);
  impatient = await KeylessGateway.start({ ...settings, UPSTREAM_HEADERS_TIMEOUT_MS: '1000' }, keyless);
});
afterAll(async () => {
  await onAws.gateway.stop();
  await impatient.gateway.stop();
  await keyless.stop();
});
beforeEach(() => {
  keyless.clouds.asked.length = 0;
  keyless.clouds.hosts.clear();
});

const changed = (base: New, settings: object, more: object = {}): New => ({
  ...base,
  ...more,
  auth_settings: { ...base.auth_settings, ...settings },
});

describe('whoever may add providers', () => {
  it.each([
    ['a file', { identity_token: '/etc/passwd' }],
    ['a path', { identity_token: '../openai' }],
    ['a URL', { identity_token: 'file:///etc/passwd' }],
  ])('cannot name %s as the identity token', async (_, settings) => {
    expect(await problemOf(keyless.add(changed(OPENAI, settings)))).toContain(
      'auth_settings.identity_token: must be a name in IDENTITY_TOKEN_FILES',
    );
  });

  it('cannot use a token that the operator did not name', async () => {
    const name = await keyless.add(changed(OPENAI, { identity_token: 'other' }));
    expect((await keyless.probe(name)).message).toContain(
      'IDENTITY_TOKEN_FILES names no identity token "other"',
    );
    expect((await keyless.call(name)).code).toBe('provider_credential_unavailable');
    expect(keyless.clouds.asked).toEqual([]);
  });

  it.each(EACH)(
    'cannot have an identity token sent to another host than its own (%s)',
    async (auth, base) => {
      const foreign = auth === 'google' ? 'openai' : 'google';
      const name = await keyless.add(changed(base, { identity_token: foreign }));
      const { ok, message } = await keyless.probe(name);
      expect([ok, message]).toEqual([
        false,
        expect.stringContaining(`the identity token "${foreign}" to https://`),
      ]);
      expect(keyless.clouds.asked).toEqual([]);
    },
  );

  it('cannot have the assertion sent to another endpoint than that of Entra ID', async () => {
    for (const token_url of [
      'https://evil.example/token',
      'https://login.microsoftonline.com.evil.example/token',
      'https://login.microsoftonline.com:444/token',
      'http://login.microsoftonline.com/token',
      'https://login.microsoftonline.com@evil.example/token',
      `http://${METADATA}/token`,
    ])
      expect(await problemOf(keyless.add(changed(ENTRA, { token_url })))).toContain(
        'auth_settings.token_url: ',
      );
    // Another cloud of Microsoft is not the host of this token either.
    const name = await keyless.add(changed(ENTRA, { token_url: 'https://login.microsoftonline.us/t/token' }));
    expect((await keyless.probe(name)).message).toContain('and token_url is elsewhere');
    expect(keyless.clouds.asked).toEqual([]);
  });

  it.each([
    ...['https://evil.example', 'https://api.openai.com.evil.example', 'https://api.openai.com:8443'].map(
      (url) => [OPENAI, url] as const,
    ),
    ...['https://api.openai.com', 'https://evilapi.anthropic.com'].map((url) => [ANTHROPIC, url] as const),
    ...[
      'https://abc.execute-api.eu-central-1.amazonaws.com',
      'https://ec2-1-2-3-4.eu-central-1.compute.amazonaws.com',
      'https://lb-1.eu-central-1.elb.amazonaws.com',
      'https://bedrock-runtime.eu-central-1.amazonaws.com.evil.example',
      'http://127.0.0.1:9',
    ].flatMap((url) => [[WEB_IDENTITY, url] as const, [CONTAINER, url] as const, [INSTANCE, url] as const]),
    ...['https://googleapis.com.evil.example', 'https://evilgoogleapis.com', 'https://x.run.app'].flatMap(
      (url) => [[GOOGLE, url] as const, [OF_MACHINE, url] as const],
    ),
    ...['https://mine.azure-api.net', 'https://evil.example/.openai.azure.com', 'https://azure.com'].flatMap(
      (url) => [[ENTRA, url] as const, [MANAGED, url] as const],
    ),
  ])('cannot have the credential of %j sent to %s', async (base, url) => {
    expect(await problemOf(keyless.add({ ...base, url }))).toContain(
      'url: must be at a host of the cloud itself',
    );
  });

  it.each(EACH)('cannot move a provider to another host later (%s)', async (_, base) => {
    const name = await keyless.add(base);
    const moving = keyless.gateway.admin('PATCH', `/providers/${name}`, { url: 'https://evil.example' });
    expect(await problemOf(moving)).toContain('url: must be at a host of the cloud itself');
  });

  it.each(EACH)('is checked at each exchange: a row that was written by hand (%s)', async (_, base) => {
    const name = await keyless.add(base);
    await keyless.gateway.database.query(
      `UPDATE provider SET url = 'https://evil.example' WHERE name = '${name}'`,
    );
    const { ok, message } = await keyless.probe(name);
    expect([ok, message]).toEqual([
      false,
      expect.stringContaining('the URL of this provider must be at a host of the cloud itself'),
    ]);
    expect(keyless.clouds.asked).toEqual([]);
  });

  it.each([
    ['container', CONTAINER, 'aws'],
    ['instance', INSTANCE, 'aws'],
    ['google', OF_MACHINE, 'google'],
    ['azure', MANAGED, 'azure'],
  ])('cannot ask a metadata service that the operator did not allow (%s)', async (_, base, cloud) => {
    const name = await keyless.add(base);
    const { message } = await keyless.probe(name);
    expect(message).toContain(`only with CLOUD_IDENTITY=${cloud} in the environment`);
    expect((await keyless.call(name)).code).toBe('provider_credential_unavailable');
    if (cloud !== 'aws') {
      expect((await onAws.probe(name)).message).toContain(`only with CLOUD_IDENTITY=${cloud}`);
    }
    expect(keyless.clouds.asked).toEqual([]);
  });

  it('cannot add a metadata service as a provider where the gateway asks it itself', async () => {
    for (const url of [
      `http://${METADATA}`,
      'http://169.254.170.2',
      'http://[fd00:ec2::23]',
      'http://169.254.170.23',
    ]) {
      for (const auth of ['bearer', 'client'])
        expect(await problemOf(onAws.add({ auth, url, secret: null }))).toContain('url: must not point to');
      expect(await problemOf(onAws.add({ ...INSTANCE, url }))).toContain('url: must not point to');
    }
  });

  it('cannot store a secret beside the identity, or mix settings', async () => {
    for (const [, base] of EACH)
      expect(await problemOf(keyless.add({ ...base, secret: 'sk-a-secret-that-is-long-enough' }))).toContain(
        'secret: must be null',
      );
    for (const [base, settings, message] of [
      [WEB_IDENTITY, { access_key_id: 'AKIAIOSFODNN7EXAMPLE' }, 'access_key_id: does not belong here'],
      [CONTAINER, { role_arn: 'arn:aws:iam::111122223333:role/x' }, 'role_arn: does not belong here'],
      [OF_MACHINE, { audience: '//iam' }, 'audience: does not belong here'],
      [MANAGED, { token_url: 'https://login.microsoftonline.com/t' }, 'token_url: does not belong here'],
      [OPENAI, { source: 'metadata' }, 'source does not belong to openai-federation'],
      [OPENAI, { federation_rule_id: 'x' }, 'federation_rule_id does not belong to openai-federation'],
      [
        WEB_IDENTITY,
        { credentials: 'other' },
        'credentials: must be one of web-identity, container, instance',
      ],
      [GOOGLE, { source: 'other' }, 'source: must be one of federation, metadata'],
      [WEB_IDENTITY, { role_arn: undefined }, 'role_arn: is needed'],
      [OPENAI, { service_account_id: undefined }, 'service_account_id: is needed'],
    ] as const)
      expect(await problemOf(keyless.add(changed(base, settings)))).toContain(message);
    const keyed = { auth: 'google', url: PROVIDERS.vertex, secret: '{}', auth_settings: { audience: 'x' } };
    expect(await problemOf(keyless.add(keyed))).toContain(
      'is for providers without a secret; give source as well',
    );
  });
});

describe('the environment of the container', () => {
  it('cannot lead to another address than those of container credentials', async () => {
    const name = await onAws.add(CONTAINER);
    for (const url of [
      'http://127.0.0.1:80/x',
      'https://evil.example/x',
      'http://169.254.170.2.evil.example/',
    ]) {
      const elsewhere = await KeylessGateway.start(
        { CLOUD_IDENTITY: 'aws', AWS_CONTAINER_CREDENTIALS_FULL_URI: url },
        keyless,
      );
      expect((await elsewhere.probe(name)).message).toContain('the metadata service must be at one of');
      await elsewhere.gateway.stop();
    }
    expect(keyless.clouds.asked).toEqual([]);
  });
});

describe('the file of an identity token', () => {
  const file = () => join(keyless.folder, 'openai');
  let name: string;
  beforeAll(async () => (name = await keyless.add(OPENAI)));
  beforeEach(() => {
    rmSync(file(), { recursive: true, force: true });
    keyless.clouds.hosts.set('auth.openai.com', () => bearer('a-token'));
  });
  afterAll(() => {
    rmSync(file(), { recursive: true, force: true });
    keyless.identify('openai');
  });

  it.each([
    ['is missing', () => {}, 'cannot be read (ENOENT)'],
    ['is a folder', () => mkdirSync(file()), 'is not a regular file'],
    ['is a pipe without a writer', () => void execFileSync('mkfifo', [file()]), 'is not a regular file'],
    ['is a link to a device', () => symlinkSync('/dev/zero', file()), 'is not a regular file'],
    ['is a link to itself', () => symlinkSync(file(), file()), 'cannot be read (ELOOP)'],
    ['is empty', () => writeFileSync(file(), ''), 'does not contain a JWT'],
    ['is no JWT', () => symlinkSync('/etc/passwd', file()), 'does not contain a JWT'],
    ['has a line more', () => writeFileSync(file(), `${jwt('a')}\nroot:x`), 'does not contain a JWT'],
    [
      'is half a token',
      () => writeFileSync(file(), jwt('a').split('.', 2).join('.')),
      'does not contain a JWT',
    ],
    [
      'is huge',
      () => {
        writeFileSync(file(), '');
        truncateSync(file(), 1_099_511_627_776);
      },
      'is larger than 16 KiB',
    ],
    [
      'is a little too large',
      () => writeFileSync(file(), `a.${'b'.repeat(16_381)}.c`),
      'is larger than 16 KiB',
    ],
  ])('is not sent if it %s', async (_, make, message) => {
    make();
    const result = await keyless.probe(name);
    expect(result).toMatchObject({ ok: false, code: 'credential_unavailable' });
    expect(result.message).toContain(`the file of the identity token "openai" ${message}`);
    expect(result.message).not.toContain(keyless.folder);
    expect(keyless.clouds.asked).toEqual([]);
  });

  it('may be a link that is replaced, as Kubernetes does it, and is read again for each exchange', async () => {
    const sent = () =>
      keyless.clouds
        .at('auth.openai.com')
        .map(({ body }) => (JSON.parse(body) as { subject_token: string }).subject_token);
    const data = join(keyless.folder, '..data');
    symlinkSync('..data/token', file());
    const tokens = ['one', 'two', 'three'].map((subject) => {
      const token = jwt(subject);
      const folder = join(keyless.folder, `..${subject}`);
      mkdirSync(folder);
      writeFileSync(join(folder, 'token'), token);
      return { token, subject };
    });
    for (const { subject } of tokens) {
      rmSync(data, { force: true });
      symlinkSync(`..${subject}`, data);
      expect(await keyless.probe(name)).toMatchObject({ ok: true });
    }
    expect(sent()).toEqual(tokens.map(({ token }) => token));
  });
});

describe('a token endpoint', () => {
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  const keys = (more: object) =>
    assumed({
      id: 'ASIAIOSFODNN7EXAMPLE',
      secret: 'a-secret',
      token: 'a-session',
      expiration: inAnHour,
      ...more,
    });

  describe.each(EACH)('of %s', (_, base, host) => {
    let name: string;
    beforeAll(async () => (name = await keyless.add(base)));

    it('that redirects is not followed', async () => {
      keyless.clouds.hosts.set(host, () => ({
        status: 307,
        headers: { location: 'https://my.openai.azure.com/stolen' },
      }));
      expect((await keyless.probe(name)).message).toContain('responded with status 307');
      expect(keyless.clouds.asked.map((asked) => asked.host)).toEqual([host]);
    });

    it('that hangs is given up', async () => {
      keyless.clouds.hosts.set(host, () => null);
      expect((await impatient.probe(name)).message).toContain('did not respond (timeout)');
    });

    it.each([
      [
        'HTML',
        { body: '<html>Sign in</html>', headers: { 'content-type': 'text/html' } },
        'without a usable',
      ],
      ['nothing', { body: '' }, 'without a usable'],
      ['a list', { body: [1] }, 'without a usable'],
      ['a gigabyte', { body: 'x'.repeat(1_000_000) }, 'more than 64 KiB'],
      ['an error', { status: 500, body: 'oops' }, 'responded with status 500'],
    ])('that responds with %s gives no credential', async (_, answer, message) => {
      keyless.clouds.hosts.set(host, () => answer);
      const result = await keyless.probe(name);
      expect(result).toMatchObject({ ok: false, code: 'credential_unavailable' });
      expect(result.message).toContain(message);
    });
  });

  it.each([0, -1, '-3600', null, 'soon', Number.NaN])(
    'that issues a token with expires_in %p gives none',
    async (seconds) => {
      keyless.clouds.hosts.set('auth.openai.com', () => bearer('a-token', seconds));
      expect((await keyless.probe(await keyless.add(OPENAI))).message).toContain('already expired');
    },
  );

  it.each([
    ['2020-01-01T00:00:00Z', 'already expired'],
    ['tomorrow', 'without a usable end'],
    ['', 'without a usable end'],
  ])('of AWS with the expiration %p gives none', async (expiration, message) => {
    keyless.clouds.hosts.set('sts.eu-central-1.amazonaws.com', () => keys({ expiration }));
    expect((await keyless.probe(await keyless.add(WEB_IDENTITY))).message).toContain(message);
  });

  it.each([
    ['openai', OPENAI, 'auth.openai.com', () => bearer('a-token', 1e300)],
    [
      'aws',
      WEB_IDENTITY,
      'sts.eu-central-1.amazonaws.com',
      () => keys({ expiration: '9999-12-31T23:59:59Z' }),
    ],
  ])('that issues a credential for ever is asked again within a day (%s)', async (_, base, host, answer) => {
    keyless.clouds.hosts.set(host, answer);
    const name = await keyless.add(base);
    const { auth, auth_settings } = base;
    const sources = keyless.gateway.gateway.app.get(CredentialSources, { strict: false });
    const source = sources.make({
      name,
      auth,
      origin: base.url,
      settings: auth_settings,
      secret: null,
    } as Parameters<CredentialSources['make']>[0]);
    await source!.tokens!.get();
    const { held } = source!.tokens as unknown as { held: { endsAt: { wall: number } } };
    expect(held.endsAt.wall).toBeLessThanOrEqual(Date.now() + 86_400_000);
  });
});

it('shows no identity token and no credential anywhere, also if an endpoint echoes them', async () => {
  const secrets: string[] = [];
  for (const [, base, host] of EACH) {
    const identity = (base.auth_settings as { identity_token: 'openai' }).identity_token;
    secrets.push(keyless.identify(identity));
    keyless.clouds.hosts.set(host, ({ body, path, headers }) =>
      path === '/v1/chat/completions'
        ? { headers: { 'x-echo': headers.authorization! } }
        : {
            status: 400,
            body: host.startsWith('sts.eu')
              ? `<Error><Code>InvalidIdentityToken</Code><Message>${decodeURIComponent(body)}</Message></Error>`
              : { error: 'invalid_grant', error_description: `cannot read ${body}` },
          },
    );
    const name = await keyless.add(base);
    const { message } = await keyless.probe(name);
    expect(message).toMatch(/responded with status 400: (invalid_grant|InvalidIdentityToken)/);
    expect(message).not.toContain('cannot read');
    const { response, code } = await keyless.call(name);
    expect([code, await response.text()]).toEqual([
      'provider_credential_unavailable',
      expect.not.stringContaining('eyJ'),
    ]);
  }
  keyless.clouds.hosts.set('auth.openai.com', () => bearer('the-access-token'));
  keyless.clouds.hosts.set('api.openai.com', ({ headers }) => ({
    headers: { 'x-echo': headers.authorization!, 'x-plain': 'yes' },
  }));
  const { status, response } = await keyless.call(await keyless.add(OPENAI));
  expect([status, response.headers.get('x-echo'), response.headers.get('x-plain')]).toEqual([
    200,
    null,
    'yes',
  ]);
  secrets.push('the-access-token');
  const shown = JSON.stringify([
    await keyless.gateway.admin('GET', '/providers'),
    await keyless.gateway.admin('GET', '/audit'),
    await keyless.gateway.database.query('SELECT * FROM provider'),
    await keyless.gateway.database.query('SELECT * FROM request_log'),
  ]);
  for (const secret of secrets) expect(shown).not.toContain(secret);
  expect(shown).not.toContain(keyless.folder);
});
