import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawClient } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { routesOf } from './routes.js';

let provider: RawProvider;
let postern: TestGateway;
let client: RawClient;
beforeAll(async () => {
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
  client = await RawClient.connect(postern.port);
});
afterAll(async () => {
  client.destroy();
  await postern.stop();
  await provider.stop();
});

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY'];

/**
 * Open to all by design: states, the session, the page for browsers at `/`, the files of the console, which hold no data,
 * and, outside production, the documentation.
 */
const OPEN = /^\/(health|docs|console|admin\/v1\/(session|oidc(\/(start|callback|logout))?)$|$)/i;
/** `/call` is a name inside the gateway that must not work from outside. */
const UNKNOWN = ['/admin', '/admin/v1', '/admin/v1/anything'];
const PROXY_PATHS = ['/v1/chat/completions', '/v1/models', '/v1', '/p/default/v1/models', '/p', '/call'];

/** One path in the forms in which filters have been passed by elsewhere. */
function variants(path: string): string[] {
  const encoded = path.replace(/[a-z](?=[^/]*$)/, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
  return [
    ...new Set([
      path,
      `${path}/`,
      `${path}//`,
      `/${path}`,
      path.toUpperCase(),
      `${path};x=1`,
      `${path}.json`,
      `${path}%20`,
      `${path}%00`,
      `${path}?x=1`,
      `${path}?access_token=${ADMIN_TOKEN}`,
      encoded,
      path.replace('/', '/./'),
      path.replace('/', '/x/../'),
      path.replace('/', '/x/%2e%2e/'),
      path.replace('/', '/health/..;/'),
      path.replace(/\/(?=[^/]+$)/, '%2f'),
      path.replace(/\//g, '\\'),
      `http://127.0.0.1${path}`,
    ]),
  ];
}

async function statusOf(method: string, target: string, headers = ''): Promise<number> {
  if (client.socket.destroyed) client = await RawClient.connect(postern.port);
  client.send(`${method} ${target} HTTP/1.1\r\nHost: x\r\n${headers}Content-Length: 0\r\n\r\n`);
  const reply = await client.answer({ bodyless: method === 'HEAD' });
  if (reply.header('connection') === 'close') {
    client.destroy();
    client = await RawClient.connect(postern.port);
  }
  return reply.status;
}

const paths = () => {
  const routed = routesOf(postern).map(({ path }) => path.replace(':id', ID).replace(':name', 'default'));
  return [...new Set([...routed, ...UNKNOWN, ...PROXY_PATHS])].filter((path) => !OPEN.test(path));
};

describe('every route of the running router, by every method, in every form of its path', () => {
  it('is there to be looked at', () => {
    expect(paths().length).toBeGreaterThan(15);
    expect(paths()).toEqual(expect.arrayContaining(['/admin/v1/keys', `/admin/v1/keys/${ID}/rotate`]));
  });

  it('gives nobody without a key more than 400, 401, 404 or 405; well-formed ones no 400', async () => {
    const seen: string[] = [];
    for (const path of paths()) {
      for (const target of variants(path)) {
        for (const method of METHODS) {
          const status = await statusOf(method, target);
          const plain = target === path || target === `${path}/` || target === `${path}?x=1`;
          if (![401, 404, 405, ...(plain ? [] : [400])].includes(status)) {
            seen.push(`${method} ${target}: ${status}`);
          }
        }
      }
    }
    expect(seen).toEqual([]);
    expect(provider.requests).toHaveLength(0);
  }, 600_000);

  it('opens nothing of the admin API to a gateway key, wherever it is put', async () => {
    const all = await postern.createKey({ endpoints: 'all' });
    const seen: string[] = [];
    const before = await changes();
    for (const path of paths().filter((path) => path.startsWith('/admin'))) {
      for (const target of [path, `${path}/`, path.toUpperCase(), `${path};x`]) {
        for (const method of METHODS) {
          for (const name of ['Authorization: Bearer', 'x-api-key:', 'api-key:', 'x-goog-api-key:']) {
            const status = await statusOf(method, target, `${name} ${all}\r\n`);
            if (![401, 404, 405].includes(status)) seen.push(`${method} ${target} ${name}: ${status}`);
          }
        }
      }
    }
    expect(seen).toEqual([]);
    expect(await changes()).toEqual(before);
    expect(provider.requests).toHaveLength(0);
  }, 600_000);

  it('opens nothing of the providers to the admin token, wherever it is put', async () => {
    const seen: string[] = [];
    for (const path of PROXY_PATHS) {
      for (const method of METHODS) {
        for (const name of ['Authorization: Bearer', 'x-api-key:', 'api-key:', 'x-goog-api-key:']) {
          const status = await statusOf(method, path, `${name} ${ADMIN_TOKEN}\r\n`);
          if (![401, 404, 405].includes(status)) seen.push(`${method} ${path} ${name}: ${status}`);
        }
      }
    }
    expect(seen).toEqual([]);
    expect(provider.requests).toHaveLength(0);
  });
});

/** Everything that an admin could have changed. */
async function changes(): Promise<unknown> {
  const tables = ['team', 'gateway_key', 'provider', 'audit_log'];
  return Promise.all(tables.map((table) => postern.database.query(`SELECT * FROM ${table} ORDER BY id`)));
}
