import { describeInBrowser } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { administration } from './flows/administration.js';
import { figures } from './flows/figures.js';
import { hostileNames } from './flows/hostile.js';
import { keyFlows } from './flows/keys.js';
import { requestFlows } from './flows/requests.js';
import { roles } from './flows/roles.js';
import { routeFlows } from './flows/routes.js';
import { signingIn } from './flows/signing-in.js';
import { WRITES_IMAGES } from './picture.js';
import { seedConsole, seedProvidersAndLimits } from './seed.js';

// One gateway, one browser and one seeded database for all flows, in this order.
// The pictures of the docs are not of these.
(WRITES_IMAGES ? describe.skip : describeInBrowser)('working with the console', () => {
  const gateway = {} as ConsoleGateway;
  beforeAll(async () => {
    Object.assign(gateway, await startConsoleGateway());
    const { admin, database, provider } = gateway;
    gateway.seeded = await seedConsole(database.url, { rows: 10_000 });
    await seedProvidersAndLimits(database.url, admin);
    await admin('POST', '/admin/v1/providers', { name: 'local', url: provider.url, secret: 'sk-0123456789' });
    await admin('PATCH', '/admin/v1/providers/local', { default: true });
    const price = { catalog: 'local', model: 'priced-model', input: '1000', output: '1000' };
    await admin('POST', '/admin/v1/prices', price);
  });
  afterAll(() => gateway.stop());

  describe('figures', () => figures(gateway));
  describe('keys', () => keyFlows(gateway));
  describe('requests', () => requestFlows(gateway));
  describe('routes and credentials', () => routeFlows(gateway));
  describe('administration', () => administration(gateway));
  describe('names from elsewhere', () => hostileNames(gateway));
  describe('roles', () => roles(gateway));
  describe('signing in', () => signingIn(gateway));
});
