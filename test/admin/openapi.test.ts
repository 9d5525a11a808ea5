import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { z } from 'zod';
import { errorSchema } from '../../src/admin/fields.schema.js';
import { auditPageSchema } from '../../src/audit/audit.schema.js';
import { issuedKeySchema, rotatedKeySchema, keyPageSchema, keySchema } from '../../src/keys/keys.schema.js';
import { probeSchema, providerPageSchema, providerSchema } from '../../src/providers/providers.schema.js';
import { requestPageSchema, shownRequestSchema } from '../../src/requests/requests.schema.js';
import { usagePageSchema } from '../../src/usage/usage.schema.js';
import { teamPageSchema, teamSchema } from '../../src/teams/teams.schema.js';
import { QuotasModule } from '../example/quotas/quotas.module.js';
import { addToApp } from '../support/app-modules.js';
import { ADMIN_TOKEN, PROVIDER_KEY, startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { call } from './call.js';
import { send, signIn } from './browser.js';
import { routesOf } from './routes.js';

interface Described {
  operationId: string;
  tags: string[];
  security: object[];
  parameters?: (Field & { name: string; in: string })[];
  requestBody?: { content: { 'application/json': { schema: { $ref: string } } } };
  responses: Record<
    string,
    {
      headers?: Record<string, unknown>;
      content?: { 'application/json'?: { schema: { $ref: string }; example?: unknown } };
    }
  >;
}

/** A schema, or a parameter that has one. */
interface Field {
  $ref?: string;
  in?: string;
  required?: boolean | string[];
  type?: string;
  description?: string;
  example?: unknown;
  enum?: unknown[];
  schema?: Field;
  properties?: Record<string, Field>;
  items?: Field;
  anyOf?: Field[];
}

interface Document {
  openapi: string;
  info: { version: string };
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Described>>;
  components: {
    schemas: Record<string, Field & { example?: object }>;
    securitySchemes: Record<string, unknown>;
  };
}

/** What is answered, by its name in the document. */
const ANSWERS = new Map(
  [
    teamSchema,
    teamPageSchema,
    keySchema,
    keyPageSchema,
    issuedKeySchema,
    rotatedKeySchema,
    providerSchema,
    providerPageSchema,
    probeSchema,
    shownRequestSchema,
    requestPageSchema,
    usagePageSchema,
    auditPageSchema,
  ].map((schema): [string, z.ZodType] => [schema.meta()!.id as string, schema]),
);

// The recipe for a resource of one's own (docs/develop/modules.md) passes these tests too.
addToApp(QuotasModule);

let provider: RawProvider;
let postern: TestGateway;
let text: string;
let document: Document;
beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', ['Content-Type: application/json'], '{"data":[]}'));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
  const response = await fetch(`${postern.url}/docs-json`);
  expect(response.status).toBe(200);
  text = await response.text();
  document = JSON.parse(text) as Document;
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

const OWN_PATH = /^\/(admin|health|metrics)/;

describe('/docs-json', () => {
  /** Without those of plain controllers, which a module of one's own may have. */
  const ownPaths = () => Object.entries(document.paths).filter(([path]) => OWN_PATH.test(path));

  it('holds exactly the routes of the running router that are not for calls, each of them described', () => {
    const routes = routesOf(postern)
      .filter(({ method, path }) => OWN_PATH.test(path) && method !== 'ALL')
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
    const documented = ownPaths().flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(documented.sort()).toEqual(routes.sort());
  });

  it('has an ID, a tag, a response and errors for each, and requires the token', () => {
    const operations = ownPaths().flatMap(([, item]) => Object.values(item));
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
    const used = new Set(operations.flatMap(({ tags }) => tags));
    const undescribed = document.tags
      .filter(({ name, description }) => used.has(name) && description === '')
      .map(({ name }) => `${name}: describe it by @AdminController(path, { name: '${name}', description })`);
    expect(undescribed).toEqual([]);
    for (const { operationId, responses, security, tags } of operations) {
      // Open to all.
      if (tags.includes('Health') || tags.includes('Session')) continue;
      expect([operationId, security]).toEqual([operationId, [{ adminToken: [] }]]);
      const errors = tags.includes('Metrics') ? ['401'] : ['400', '401', '403', '503'];
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(errors));
    }
    expect(document).toMatchObject({
      openapi: '3.0.3',
      components: {
        securitySchemes: { adminToken: { type: 'http', scheme: 'bearer', bearerFormat: 'opaque' } },
      },
    });
  });

  it('refers only to schemas that are there, and has none that nobody refers to', () => {
    const named = Object.keys(document.components.schemas);
    const refs = [...text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name!);
    expect(refs.filter((name) => !named.includes(name))).toEqual([]);
    expect(named.filter((name) => !refs.includes(name))).toEqual([]);
  });

  it('has the version of the package', () => {
    const { version } = JSON.parse(readFileSync(join(__dirname, '../../package.json'), 'utf8')) as {
      version: string;
    };
    expect(document.info.version).toBe(version);
  });

  it('describes every field and parameter, with an example of each that is not one of a few words', () => {
    const lacking: string[] = [];
    const look = (name: string, { description, schema, ...own }: Field) => {
      const field = { ...schema, ...own };
      if (field.$ref !== undefined) return;
      if (!description && !schema?.description) lacking.push(`${name}: no description in its meta()`);
      const isOpen = !['boolean', 'object', 'array'].includes(field.type ?? 'object') && !field.enum;
      // The page fills in the examples of parameters: those of optional ones are in the description.
      const isFilledIn = field.example !== undefined;
      const isOptional = field.in === 'query' && !field.required;
      if (isOpen && !(isOptional ? / For example `/.test(description!) : isFilledIn))
        lacking.push(
          `${name}: no ${isOptional ? '"For example `…`" in its description' : 'example in its meta()'}`,
        );
      if (isOptional && isFilledIn) lacking.push(`${name} is filled in`);
      lookInside(name, field);
    };
    const lookInside = (name: string, { properties = {}, items, anyOf = [] }: Field) => {
      for (const [field, inner] of Object.entries(properties)) look(`${name}.${field}`, inner);
      for (const inner of [items, ...anyOf]) if (inner !== undefined) lookInside(`${name}[]`, inner);
    };
    for (const [name, schema] of Object.entries(document.components.schemas)) lookInside(name, schema);
    for (const [path, item] of Object.entries(document.paths))
      for (const { parameters = [] } of Object.values(item))
        for (const parameter of parameters)
          if (parameter.in !== 'header') look(`${path}?${parameter.name}`, parameter);
    expect(lacking).toEqual([]);
  });

  it('has an example of each error that its schema accepts, and one that fits its status', () => {
    const errors = Object.values(document.paths)
      .flatMap((item) => Object.values(item))
      .flatMap(({ responses }) => Object.entries(responses))
      .filter(([, { content }]) => content?.['application/json']?.schema.$ref.endsWith('/Error'));
    expect(errors.length).toBeGreaterThan(50);
    const codes = new Map<string, string>();
    for (const [status, { content }] of errors) {
      const example = errorSchema.parse(content!['application/json']!.example);
      codes.set(status, example.error.code);
    }
    expect(Object.fromEntries(codes)).toEqual({
      400: 'invalid_request',
      401: 'invalid_admin_token',
      403: 'forbidden',
      404: 'not_found',
      409: 'conflict',
      413: 'request_too_large',
      415: 'unsupported_media_type',
      429: 'rate_limited',
      503: 'database_unavailable',
    });
  });

  it('holds no secret', () => {
    const { password } = new URL(postern.database.url);
    const secrets = [postern.key, ADMIN_TOKEN, PROVIDER_KEY, postern.database.url, password].filter(Boolean);
    for (const secret of secrets) expect(text).not.toContain(secret);
    expect(text).not.toMatch(/ptn_[0-9A-Za-z]{38}|\/(root|home|work|tmp)\//);
  });
});

describe('responses of the running gateway', () => {
  const said = (route: string): Described => {
    const [method, path] = route.split(' ') as [string, string];
    return document.paths[path]![method.toLowerCase()]!;
  };
  const nameOf = (holder: { content?: { 'application/json'?: { schema: { $ref: string } } } } | undefined) =>
    holder!.content!['application/json']!.schema.$ref.split('/').at(-1)!;
  const exampleOf = (route: string) => document.components.schemas[nameOf(said(route).requestBody)]!.example!;

  async function expectAsSaid(route: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const [[status, described]] = Object.entries(said(route).responses) as [
      [string, Described['responses']['']],
    ];
    const [method] = route.split(' ') as [string];
    const got = await call(postern, method, path, body);
    expect([route, got.status, got.body]).toEqual([route, Number(status), got.body]);
    expect(ANSWERS.get(nameOf(described))!.safeParse(got.body).error).toBeUndefined();
    expect(got.headers.has('etag')).toBe(described.headers?.ETag !== undefined);
    return got.body as unknown as Record<string, unknown>;
  }

  it('have the form that the document promises', async () => {
    const response = await fetch(`${postern.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${postern.key}`, 'content-type': 'application/json' },
      body: '{"model":"gpt-4o-mini"}',
    });
    await postern.row(response.headers.get('x-gateway-request-id')!);

    const team = await expectAsSaid('POST /admin/v1/teams', '/teams', { name: 'documented' });
    const teamAt = `/teams/${team.id as string}`;
    await expectAsSaid('GET /admin/v1/teams', '/teams');
    await expectAsSaid('GET /admin/v1/teams/{id}', teamAt);
    await expectAsSaid('PATCH /admin/v1/teams/{id}', teamAt, { name: 'renamed' });

    const order = { ...exampleOf('POST /admin/v1/keys'), team: 'renamed' };
    const key = await expectAsSaid('POST /admin/v1/keys', '/keys', order);
    const keyAt = `/keys/${key.id as string}`;
    await expectAsSaid('GET /admin/v1/keys', '/keys');
    await expectAsSaid('GET /admin/v1/keys/{id}', keyAt);
    await expectAsSaid('PATCH /admin/v1/keys/{id}', keyAt, exampleOf('PATCH /admin/v1/keys/{id}'));
    await expectAsSaid('POST /admin/v1/keys/{id}/rotate', `${keyAt}/rotate`);
    await expectAsSaid('POST /admin/v1/keys/{id}/revoke', `${keyAt}/revoke`);

    const another = { name: 'stored', url: provider.url, secret: 'sk-stored' };
    await expectAsSaid('POST /admin/v1/providers', '/providers', another);
    await expectAsSaid('GET /admin/v1/providers', '/providers');
    await expectAsSaid('GET /admin/v1/providers/{name}', '/providers/stored');
    await expectAsSaid('PATCH /admin/v1/providers/{name}', '/providers/stored', { default: true });
    await expectAsSaid('POST /admin/v1/providers/{name}/test', '/providers/stored/test');

    const { data } = await expectAsSaid('GET /admin/v1/requests', '/requests');
    const [row] = data as { id: string }[];
    await expectAsSaid('GET /admin/v1/requests/{id}', `/requests/${row!.id}`);
    for (const groups of ['team,key,provider,model,day', 'hour', 'model']) {
      await expectAsSaid('GET /admin/v1/usage', `/usage?group_by=${groups}`);
    }
    await expectAsSaid('GET /admin/v1/audit', '/audit');
  });

  it.each(['/keys/nonsense', '/teams?limit=0', '/nothing'])('are errors in one form: %s', async (path) => {
    const { status, body } = await call(postern, 'GET', path);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(errorSchema.safeParse(body).error).toBeUndefined();
  });
});

describe('/docs', () => {
  it('is a page with its parts, from this gateway alone', async () => {
    const page = await fetch(`${postern.url}/docs`);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
    const html = await page.text();
    // The content security policy allows no inline script.
    expect(html).not.toMatch(/<script(?![^>]*src=)|\son\w+=/);
    const parts = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, part]) => part!);
    expect(parts.length).toBeGreaterThan(3);
    for (const part of parts) {
      expect(part).toMatch(/^\.?\//);
      expect((await fetch(new URL(part, `${postern.url}/docs`))).status).toBe(200);
    }
  });

  it('has no other file of the package that it comes from', async () => {
    for (const path of [
      'package.json',
      'README.md',
      'absolute-path.js',
      'swagger-ui.js.map',
      'oauth2-redirect.html',
    ]) {
      const { status } = await fetch(`${postern.url}/docs/${path}`);
      expect([path, status]).toEqual([path, 404]);
    }
  });

  it('keeps no token in the browser', async () => {
    const script = await (await fetch(`${postern.url}/docs/swagger-ui-init.js`)).text();
    expect(script).toContain('"persistAuthorization": false');
  });
});

describe('in production', () => {
  let production: TestGateway;
  beforeAll(async () => {
    production = await startTestGateway(
      { NODE_ENV: 'production', MASTER_KEY: Buffer.alloc(32, 7).toString('base64') },
      postern.database,
    );
  });
  afterAll(() => production.stop());

  it.each([
    '/docs',
    '/docs/',
    '/docs-json',
    '/docs/swagger-ui-init.js',
    '/docs/swagger-ui.css',
    '/docs/index.html',
  ])('%s takes the admin token, in a browser as the password of any user', async (path) => {
    const without = await fetch(production.url + path);
    expect([without.status, without.headers.get('www-authenticate')]).toEqual([
      401,
      'Basic realm="Postern", charset="UTF-8"',
    ]);
    expect(errorSchema.safeParse(await without.json()).error).toBeUndefined();
    const wrong = { headers: { authorization: `Bearer ${postern.key}` } };
    expect((await fetch(production.url + path, wrong)).status).toBe(401);
    const right = { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
    expect((await fetch(production.url + path, right)).status).toBe(200);
    for (const [credentials, status] of [
      [`:${ADMIN_TOKEN}`, 200],
      [`admin:${ADMIN_TOKEN}`, 200],
      [`admin:${ADMIN_TOKEN}x`, 401],
      [`admin:${postern.key}`, 401],
      [`${ADMIN_TOKEN}:`, 401],
      [ADMIN_TOKEN, 401],
      [':', 401],
    ] as const) {
      expect([credentials, (await fetch(production.url + path, basic(credentials))).status]).toEqual([
        credentials,
        status,
      ]);
    }
  });

  it('counts wrong passwords as it counts wrong tokens', async () => {
    for (let i = 0; i < 12; i++) await fetch(`${production.url}/docs`, basic('admin:wrong'));
    const late = await fetch(`${production.url}/docs`, basic('admin:wrong'));
    expect([late.status, Number(late.headers.get('retry-after')) > 0]).toEqual([401, true]);
    expect((await fetch(`${production.url}/docs`, basic(`admin:${ADMIN_TOKEN}`))).status).toBe(200);
  });

  it('shows a browser a link to sign in to the console, and then opens', async () => {
    const headers = { accept: 'text/html,*/*;q=0.8' };
    const without = await fetch(`${production.url}/docs`, { headers });
    expect([without.status, without.headers.get('www-authenticate')]).toEqual([401, null]);
    expect(await without.text()).toContain('<a href="/console">');
    const cookie = await signIn(production, ADMIN_TOKEN);
    for (const path of ['/docs', '/docs-json', '/docs/swagger-ui-init.js'])
      expect((await send(production, `GET ${path}`, [cookie, 'Accept: text/html'])).status).toBe(200);
    const script = (await send(production, 'GET /docs/swagger-ui-init.js', [cookie])).body.toString();
    expect(script).toContain('X-Postern-Console');
  });

  it('prompts a browser for the password where there is no console', async () => {
    const without = await startTestGateway(
      { NODE_ENV: 'production', MASTER_KEY: Buffer.alloc(32, 7).toString('base64'), CONSOLE: 'off' },
      postern.database,
    );
    const answer = await fetch(`${without.url}/docs`, { headers: { accept: 'text/html' } });
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
      401,
      'Basic realm="Postern", charset="UTF-8"',
    ]);
    await without.stop();
  });

  // Otherwise another site could make the browser of an admin who has opened /docs change something.
  it.each(['/admin/v1/teams', '/metrics'])('%s takes no Basic credentials', async (path) => {
    const answer = await fetch(production.url + path, basic(`admin:${ADMIN_TOKEN}`));
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
  });
});

const basic = (credentials: string) => ({
  headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
});
