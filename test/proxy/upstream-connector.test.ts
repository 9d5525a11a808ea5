import dns from 'node:dns';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { ForbiddenAddress, upstreamConnector } from '../../src/proxy/upstream/upstream-connector.js';

const connector = upstreamConnector({
  // Longer than a name server may take.
  connectTimeoutMs: 120_000,
  proxyUrl: undefined,
  isProxyLoop: () => false,
});

let server: Server;
let port: string;
beforeAll(async () => {
  server = createServer((socket) => socket.on('error', () => {}).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = String((server.address() as AddressInfo).port);
});
afterAll(() => new Promise((resolve) => server.close(resolve)));
afterEach(() => jest.restoreAllMocks());

function connect(protocol: string, hostname: string): Promise<Error | 'connected'> {
  return new Promise((resolve) => {
    connector({ protocol, hostname, port }, (error, socket) => {
      socket?.destroy();
      resolve(error ?? 'connected');
    });
  });
}

it.each(['127.0.0.1', 'localhost'])('connects to %s', async (hostname) => {
  expect(await connect('http:', hostname)).toBe('connected');
});

it.each([
  '169.254.169.254',
  '::ffff:169.254.169.254',
  'fe80::1',
  'fd00:ec2::254',
  '100.100.100.200',
  '64:ff9b:1::a9fe:a9fe',
  '::ffff:0:a9fe:a9fe',
  '2001::1',
  '192.0.0.192',
])('does not connect to %s', async (hostname) => {
  for (const protocol of ['http:', 'https:']) {
    expect(await connect(protocol, hostname)).toBeInstanceOf(ForbiddenAddress);
  }
});

it('does not speak plain http to a public address', async () => {
  expect(await connect('http:', '8.8.8.8')).toBeInstanceOf(ForbiddenAddress);
});

// What getaddrinfo makes of a number is an address, so these are names that resolve without any name server.
it.each([
  ['https:', '2852039166', '169.254.169.254'],
  ['http:', '0xa9fea9fe', '169.254.169.254'],
  ['https:', '0251.0376.43518', '169.254.169.254'],
  ['http:', '134744072', '8.8.8.8'],
])('over %s does not connect to the name %s, which resolves to %s', async (protocol, name, address) => {
  expect((await dns.promises.lookup(name)).address).toBe(address);
  expect(await connect(protocol, name)).toBeInstanceOf(ForbiddenAddress);
});

it('does not connect to a name when one of its addresses is forbidden', async () => {
  // The one thing here that is not real: no name has two such addresses on every machine.
  const answers = [
    { address: '127.0.0.1', family: 4 },
    { address: '169.254.169.254', family: 4 },
  ];
  jest
    .spyOn(dns, 'lookup')
    .mockImplementation(((_name: string, _options: object, callback: (...found: unknown[]) => void) =>
      callback(null, answers)) as unknown as typeof dns.lookup);
  expect(await connect('http:', 'rebound.test')).toBeInstanceOf(ForbiddenAddress);
  answers.pop();
  expect(await connect('http:', 'rebound.test')).toBe('connected');
});

it('tells of a name that does not exist', async () => {
  expect(await connect('https:', 'nobody.invalid')).toMatchObject({ syscall: 'getaddrinfo' });
});
