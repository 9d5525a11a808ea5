import { describeInBrowser } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { administration } from './flows/administration.js';
import { appearance } from './flows/appearance.js';
import { figures } from './flows/figures.js';
import { hostileNames } from './flows/hostile.js';
import { keyFlows } from './flows/keys.js';
import { newInstallation } from './flows/new-installation.js';
import { requestFlows } from './flows/requests.js';
import { roles } from './flows/roles.js';
import { signingIn } from './flows/signing-in.js';
import { seedConsole, seedProvidersAndLimits } from './seed.js';

// One gateway, one browser and one seeded database for all flows, in this order.
describeInBrowser('the console', () => {
  const gateway = {} as ConsoleGateway;
  beforeAll(async () => void Object.assign(gateway, await startConsoleGateway()));
  afterAll(() => gateway.stop());

  describe('of a new installation', () => newInstallation(gateway));

  describe('of an installation with three months of calls', () => {
    beforeAll(async () => {
      const { database, admin } = gateway;
      await seedConsole(database.url, { rows: process.env.POSTERN_WRITE_DOCS === '1' ? 40_000 : 10_000 });
      // What was added up before would be added again.
      await database.query(
        'BEGIN; UPDATE usage_rollup SET cursor = to_timestamp(0); TRUNCATE usage_slot, usage_day; COMMIT',
      );
      await seedProvidersAndLimits(database.url, admin);
      const price = { catalog: 'local', model: 'priced-model', input: '1000', output: '1000' };
      await admin('POST', '/admin/v1/prices', price);
    });

    describe('figures', () => figures(gateway));
    describe('keys', () => keyFlows(gateway));
    describe('requests', () => requestFlows(gateway));
    describe('administration', () => administration(gateway));
    describe('appearance', () => appearance(gateway));
    describe('names from elsewhere', () => hostileNames(gateway));
    describe('roles', () => roles(gateway));
    describe('signing in', () => signingIn(gateway));
  });
});
