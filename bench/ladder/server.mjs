// A gateway without what the named rung and those before it leave out: what startGateway() in src/runtime/gateway.ts does, by way
// of @nestjs/testing. It starts, speaks and stops like the real one.
import 'reflect-metadata';
import { Test } from '@nestjs/testing';
import { SETTINGS } from '../../.test-build/src/config/config.module.js';
import { PosternModule } from '../../.test-build/src/postern.module.js';
import { openDataDir } from '../../.test-build/src/platform/data-dir.js';
import { loadEnv } from '../../.test-build/src/config/env.js';
import { generatedSecrets } from '../../.test-build/src/config/settings.js';
import { KeyLookupService } from '../../.test-build/src/auth/key-lookup.service.js';
import { GatewayLogger } from '../../.test-build/src/observability/gateway-logger.js';
import { ShutdownService } from '../../.test-build/src/observability/shutdown.service.js';
import { GatewayHttpAdapter } from '../../.test-build/src/proxy/http/gateway-http.adapter.js';
import { FinishingCalls } from '../../.test-build/src/proxy/exchange/finishing-calls.service.js';
import { START_EVENTS } from '../../.test-build/src/runtime/serving.service.js';
import { ProvidersService } from '../../.test-build/src/providers/providers.service.js';
import { UpstreamPools } from '../../.test-build/src/proxy/upstream/upstream-pools.js';
import { known, RUNGS } from './rungs.mjs';

const rung = RUNGS.findIndex(({ name }) => name === process.argv[2]);
if (rung === -1) throw new Error(`no such rung: ${process.argv[2]}`);
const env = loadEnv();
const dataDir = await openDataDir(env.dataDir);
await dataDir.hold();
const settings = { ...env, ...(await generatedSecrets(env, dataDir)), worker: 1, workers: 1 };
const adapter = new GatewayHttpAdapter(settings);

let onFirstKey;
const firstKey = new Promise((resolve) => (onFirstKey = resolve));
const events = { report: () => {}, onFirstKey, onPermanentError: console.error };
class EventsModule {}
const eventsModule = {
  module: EventsModule,
  global: true,
  providers: [{ provide: START_EVENTS, useValue: events }],
  exports: [START_EVENTS],
};

const builder = Test.createTestingModule({ imports: [eventsModule, PosternModule.forRoot()] })
  .overrideProvider(SETTINGS)
  .useValue(settings);
for (const { apply } of RUNGS.slice(0, rung + 1)) apply(builder);
const testing = await builder.compile();
const app = testing.createNestApplication(adapter, { bodyParser: false, abortOnError: false });
app.useLogger(new GatewayLogger(env));
await app.listen(0, '127.0.0.1');
const key = await firstKey;
const nobody = { headers: {}, socket: { remoteAddress: '127.0.0.1' } };
known.keys = app.get(KeyLookupService, { strict: false });
known.caller = { grant: await known.keys.find(key, nobody), key };
known.finishing = app.get(FinishingCalls, { strict: false });
known.pools = app.get(UpstreamPools, { strict: false });
known.providers = app.get(ProvidersService, { strict: false });
known.env = settings;
process.stdout.write(
  `ready on http://127.0.0.1:${adapter.getHttpServer().address().port}\nshown only once: ${key}\n`,
);

process.stdin.on('end', () => process.exit(0)).resume();
process.on('SIGTERM', async () => {
  await app.get(ShutdownService, { strict: false }).drain({ atOnce: true });
  await app.close();
  process.exit(0);
});
