// What is left out on each rung of the ladder, by the seams Nest documents for tests: the product has no option for it.
// Rungs add up: each leaves out what the ones before it did.
import { Exchange } from '../../dist/src/proxy/exchange.js';
import { Forwarder } from '../../dist/src/proxy/forwarder.js';
import { GatewayKeyGuard } from '../../dist/src/keys/gateway-key.guard.js';
import { Journal } from '../../dist/src/request-log/journal/journal.js';
import { RequestLogInterceptor } from '../../dist/src/request-log/request-log.interceptor.js';

/** What the pieces put in place need of the running application; filled in by server.mjs. */
export const known = { caller: null, pools: null, env: null };

/** In the order in which they are left out. `apply` gets Nest's TestingModuleBuilder. `rows`: calls still leave rows. */
export const RUNGS = [
  { name: 'everything', rows: true, apply: () => {} },
  {
    name: 'no key check',
    rows: true,
    apply: (builder) => builder.overrideGuard(GatewayKeyGuard).useValue({ canActivate: admitEverybody }),
  },
  {
    name: 'no journal',
    rows: true,
    apply: (builder) => builder.overrideProvider(Journal).useClass(ForgetfulJournal),
  },
  {
    name: 'no row',
    rows: false,
    apply: (builder) => builder.overrideInterceptor(RequestLogInterceptor).useValue({ intercept: passOn }),
  },
  {
    name: 'no HttpService',
    rows: false,
    apply: (builder) => builder.overrideProvider(Forwarder).useValue({ forward: forwardDirectly }),
  },
];

function admitEverybody(context) {
  const req = context.switchToHttp().getRequest();
  req.caller = known.caller;
  // Where no interceptor opens a record.
  req.call = new NoRecord();
  return true;
}

function passOn(_context, next) {
  return next.handle();
}

function forwardDirectly(req, res) {
  const exchange = new Exchange(req, res, req.provider, req.call, null, known.env);
  return exchange.run(known.pools.for(exchange.origin));
}

const NO_FILE = {};

/** Takes every line and keeps none. */
class ForgetfulJournal extends Journal {
  onModuleInit() {}
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

/** What an exchange tells a call's record, told to nobody. */
class NoRecord {
  requestBytes = 0;
  responseBytes = 0;
  status = null;
  copy = { add() {} };
  awaitBody() {}
  begin(begun) {
    begun(null);
  }
  requested() {}
  answered() {}
  end() {}
  endThen(_outcome, ended) {
    ended();
  }
  durable() {
    return null;
  }
}
