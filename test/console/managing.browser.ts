import { describeInBrowser } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { annotationFlows } from './flows/annotations.js';

// A gateway of its own: these flows need no calls of three months, and none of what the others leave.
describeInBrowser('administering in the console', () => {
  const gateway = {} as ConsoleGateway;
  beforeAll(async () => void Object.assign(gateway, await startConsoleGateway()));
  afterAll(() => gateway.stop());

  describe('contacts, cost centers and notes', () => annotationFlows(gateway));
});
