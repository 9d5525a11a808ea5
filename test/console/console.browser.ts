import { describeInBrowser } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { documented } from './flows/documented.js';
import { finding } from './flows/finding.js';
import { newInstallation } from './flows/new-installation.js';
import { usageFlows } from './flows/usage.js';
import { seedConsole, seedProvidersAndLimits } from './seed.js';
import { WRITES_IMAGES } from './picture.js';

// One gateway, one browser and one seeded database for all of it, in this order.
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
  });
});
