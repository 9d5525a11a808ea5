import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answer, RawProvider } from '../support/raw-provider.js';
import type { Ran } from './run-cli.js';
import { runHere } from './run-here.js';
import { SignInHome } from './sign-in-home.js';

let home: SignInHome;
beforeEach(() => {
  home = new SignInHome();
});
afterEach(() => home.remove());

const run = (...args: string[]) => runHere(args, home.env);

describe('a gateway that answers with escape sequences', () => {
  // Writes the clipboard, in 7 and in 8 bits.
  const ESCAPES = '\x1b]52;c;Y3VybA==\x07\x9d52;c;Y3VybA==\x9c\r\u202e';
  const TOKENS = {
    access_token: `ptn_${'a'.repeat(38)}`,
    refresh_token: `ptr_${'b'.repeat(38)}`,
    expires_in: 3_600,
  };
  const BEGUN = {
    device_code: 'x',
    user_code: `ABCD${ESCAPES}`,
    verification_uri: `https://gateway.example.com/device${ESCAPES}`,
    expires_in: 600,
    interval: 0,
  };
  /** Bodies by their path. */
  let bodies: Record<string, object>;
  let server: Server;
  let url: string;
  beforeAll(async () => {
    server = createServer((req, res) => {
      const body = bodies[req.url!]!;
      res.writeHead('error' in body ? 400 : 200, { connection: 'close' }).end(JSON.stringify(body));
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => new Promise((closed) => server.close(closed)));
  beforeEach(() => {
    bodies = {
      '/.well-known/oauth-authorization-server': { device_authorization_endpoint: 'x' },
      '/oauth/device_authorization': BEGUN,
      '/oauth/token': { ...TOKENS, email: `jane${ESCAPES}@example.com` },
    };
  });

  /** Checks what it prints. */
  async function ran(...args: string[]): Promise<Ran> {
    const result = await run(...args);
    expect(result.stdout + result.stderr).not.toMatch(/[^\P{C}\n]/u);
    return result;
  }

  it.each(['sign-in', 'token', 'sign-out'])('prints none of it as it is: %s', async (command) => {
    const signedIn = await ran('sign-in', url);
    expect(signedIn).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/as jane\?.*@example/) as string,
    });
    expect(signedIn.stderr).toMatch(
      /^Open https:\/\/gateway\.example\.com\/device\S+ and type the code ABCD\?/,
    );
    const failed = { error: 'invalid_request', error_description: `Failed${ESCAPES}` };
    bodies['/oauth/token'] = bodies['/oauth/revoke'] = failed;
    if (command === 'token') {
      const [, signIn] = home.only();
      const over = { issuedAt: new Date(0).toISOString(), expiresAt: new Date(1).toISOString() };
      home.store(url, { ...signIn, ...over });
    }
    expect(await ran(command, url)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error: Failed\?/m) as string,
    });
  });

  it('names no page but one with an http or https URL', async () => {
    bodies['/oauth/device_authorization'] = { ...BEGUN, verification_uri: 'javascript:alert(1)' };
    const { code, stderr } = await ran('sign-in', url);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^error: The page to sign in at/)]);
  });

  it.each(['access_token', 'refresh_token'] as const)(
    'has nothing stored or printed as %s',
    async (member) => {
      bodies['/oauth/token'] = { ...TOKENS, [member]: `${TOKENS[member]}${ESCAPES}` };
      expect(await ran('sign-in', url)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('error: The gateway responded with tokens') as string,
      });
      expect(existsSync(home.file)).toBe(false);
      bodies['/oauth/token'] = TOKENS;
      await ran('sign-in', url);
      bodies['/oauth/token'] = { ...TOKENS, [member]: ESCAPES };
      home.makeDue();
      expect(await ran('token')).toMatchObject({ code: 0, stdout: `${TOKENS.access_token}\n` });
    },
  );
});

it.each([
  ['http://gateway.example.com', 'must begin with https://'],
  ['gateway.example.com', 'must be a URL'],
  ['https://user:word@gateway.example.com', 'must be a URL'],
])('rejects %s', async (url, message) => {
  expect(await run('sign-in', url)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(message) as string,
  });
});

it('says that people cannot sign in where there is no such gateway', async () => {
  const provider = await RawProvider.start(
    ({ socket }) => void socket.write(answer('200 OK', [], 'reached')),
  );
  expect(await run('sign-in', provider.url)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('People cannot sign in at') as string,
  });
  await provider.stop();
});
