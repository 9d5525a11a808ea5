// What is left out on each rung of the ladder, by the seams Nest documents for tests: the product has no option for it.
// Rungs add up: each leaves out what the ones before it did.
import { mkdirSync } from 'node:fs';
import { Exchange } from '../../.test-build/src/proxy/exchange/exchange.js';
import { Forwarder } from '../../.test-build/src/proxy/stages/forwarder.js';
import { GatewayKeyGuard } from '../../.test-build/src/auth/gateway-key.guard.js';
import { Journal } from '../../.test-build/src/request-log/journal/journal.js';
import { RequestLogInterceptor } from '../../.test-build/src/proxy/stages/request-log.interceptor.js';
import { RequestLogService } from '../../.test-build/src/request-log/request-log.service.js';

/** What the pieces put in place need of the running application; filled in by server.mjs. */
export const known = { caller: null, pools: null, env: null, keys: null, providers: null };

/** In the order in which they are left out. `apply` gets Nest's TestingModuleBuilder. `rows`: calls still leave rows. */
export const RUNGS = [
  { name: 'everything', rows: true, apply: () => {} },
  {
    name: 'no key check',
    rows: true,
    apply: (builder) =>
      builder
        .overrideGuard(GatewayKeyGuard)
        .useValue(likeOne(GatewayKeyGuard, { canActivate: admitEverybody })),
  },
  {
    name: 'no journal',
    rows: true,
    apply: (builder) => builder.overrideProvider(Journal).useClass(ForgetfulJournal),
  },
  {
    name: 'no row',
    rows: false,
    apply: (builder) =>
      builder
        .overrideInterceptor(RequestLogInterceptor)
        .useValue(likeOne(RequestLogInterceptor, { record: (_call, handle) => handle() }))
        .overrideProvider(RequestLogService)
        .useValue(NO_LOG),
  },
  {
    name: 'no HttpService',
    rows: false,
    apply: (builder) => builder.overrideProvider(Forwarder).useValue({ forward: forwardDirectly }),
  },
];

/** With an object that is not of its class, calls would take Nest's router. */
function likeOne(type, members) {
  return Object.assign(Object.create(type.prototype), members);
}

function admitEverybody(context) {
  const req = context.switchToHttp().getRequest();
  req.caller = known.caller;
  // Where no interceptor opens a record.
  req.call.record = new NoRecord();
  return true;
}

function forwardDirectly(call) {
  const { pools, env, keys, providers, finishing } = known;
  const exchange = new Exchange(call, { log: NO_LOG, settings: env, keys, providers, finishing });
  return new Promise((complete, error) => {
    exchange.run(pools.for(call.provider.origin), { complete, error });
  });
}

const NO_FILE = {};

/** Takes every line and keeps none. */
class ForgetfulJournal extends Journal {
  onModuleInit() {
    mkdirSync(this.root, { recursive: true });
  }
  append() {
    return NO_FILE;
  }
  appendLines() {
    return NO_FILE;
  }
  appendSome(lines) {
    return { file: NO_FILE, bytes: lines.length };
  }
  release() {}
  async close() {}
}

/** Stands in for the record of a call. */
class NoRecord {
  requestBytes = 0;
  responseBytes = 0;
  status = null;
  outcome = null;
  copy = null;
  altered = null;
  awaitBody() {}
  bodyBegun() {}
  requestChunkRead(chunk) {
    this.requestBytes += chunk.length;
  }
  requestBodyRead() {}
  responseBegun() {}
}

/** Stands in for the request log: nothing is journalled, and every call may go on at once. */
const NO_LOG = {
  openCount: 0,
  underWay: 0,
  begin: (_call, begun) => begun(null),
  end: () => {},
  endThen: (_call, _outcome, ended) => ended(),
  durable: () => null,
  interruptOpenCalls: () => {},
};
