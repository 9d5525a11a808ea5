import { describeInBrowser } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { accessFlows } from './flows/access.js';
import { annotationFlows } from './flows/annotations.js';
import { changeFlows } from './flows/changes.js';
import { groupFlows } from './flows/groups.js';
import { leadFlows } from './flows/leads.js';
import { limitFlows } from './flows/limits.js';
import { sinkFlows } from './flows/sinks.js';
import { webhookFlows } from './flows/webhooks.js';

// A gateway of its own: these flows need no calls of three months, and none of what the others leave.
describeInBrowser('administering in the console', () => {
  const gateway = {} as ConsoleGateway;
  beforeAll(async () => void Object.assign(gateway, await startConsoleGateway()));
  afterAll(() => gateway.stop());

  describe('contacts, cost centers and notes', () => annotationFlows(gateway));
  describe('leads and members', () => leadFlows(gateway));
  // Before any other makes a token.
  describe('the page Access', () => accessFlows(gateway));
  describe('groups of teams', () => groupFlows(gateway));
  describe('the page Webhooks', () => webhookFlows(gateway));
  describe('the page Sinks', () => sinkFlows(gateway));
  describe('changes', () => changeFlows(gateway));
  describe('limits', () => limitFlows(gateway));
});
