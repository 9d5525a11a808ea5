import { describeInBrowser } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { administration } from './flows/administration.js';
import { documented } from './flows/documented.js';
import { figures } from './flows/figures.js';
import { finding } from './flows/finding.js';
import { hostileNames } from './flows/hostile.js';
import { keyFlows } from './flows/keys.js';
import { newInstallation } from './flows/new-installation.js';
import { requestFlows } from './flows/requests.js';
import { roles } from './flows/roles.js';
import { routeFlows } from './flows/routes.js';
import { signingIn } from './flows/signing-in.js';
import { usageFlows } from './flows/usage.js';
import { seedConsole, seedProvidersAndLimits } from './seed.js';
import { WRITES_IMAGES } from './picture.js';

// One gateway, one browser and one seeded database for all flows, in this order.
describeInBrowser('the console', () => {
  const gateway = {} as ConsoleGateway;
  beforeAll(async () => void Object.assign(gateway, await startConsoleGateway()));
  afterAll(() => gateway.stop());

  // The pictures show none of what other flows leave.
  if (!WRITES_IMAGES) describe('of a new installation', () => newInstallation(gateway));

  describe('of an installation with three months of calls', () => {
    beforeAll(async () => {
      const { database, admin } = gateway;
      // Seeding adds up all rows, also those that were added up before.
      await database.query('TRUNCATE usage_slot, usage_day');
      gateway.seeded = WRITES_IMAGES
        ? await seedConsole(database.url, { plain: true })
        : await seedConsole(database.url, { rows: 10_000 });
      await seedProvidersAndLimits(database.url, admin);
    });

    describe('documented pages', () => documented(gateway));
    if (!WRITES_IMAGES) describe('finding', () => finding(gateway));
    if (!WRITES_IMAGES) describe('the table of usage', () => usageFlows(gateway));
    if (!WRITES_IMAGES) describe('flows', () => flows(gateway));
  });
});

function flows(gateway: ConsoleGateway): void {
  beforeAll(async () => {
    const { admin, provider } = gateway;
    // The provider that the new installation adds; a flow that is run alone has none before.
    const { data } = await admin<{ data: { name: string }[] }>('GET', '/admin/v1/providers');
    const local = { name: 'local', url: provider.url, secret: 'sk-0123456789' };
    if (!data.some(({ name }) => name === 'local')) await admin('POST', '/admin/v1/providers', local);
    await admin('PATCH', '/admin/v1/providers/local', { default: true });
    const price = { catalog: 'local', model: 'priced-model', input: '1000', output: '1000' };
    await admin('POST', '/admin/v1/prices', price);
  });

  describe('figures', () => figures(gateway));
  describe('keys', () => keyFlows(gateway));
  describe('requests', () => requestFlows(gateway));
  describe('routes and credentials', () => routeFlows(gateway));
  describe('administration', () => administration(gateway));
  describe('names from elsewhere', () => hostileNames(gateway));
  describe('roles', () => roles(gateway));
  describe('signing in', () => signingIn(gateway));
}
