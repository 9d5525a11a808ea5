import {
  type CanActivate,
  Controller,
  Get,
  Injectable,
  Logger,
  Module,
  Post,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { APP_GUARD, RouterModule } from '@nestjs/core';
import { AdminController } from '../../../src/admin/admin-controller.js';
import { GatewayKeyGuard } from '../../../src/auth/gateway-key.guard.js';
import { PublicRoute } from '../../../src/platform/public-route.js';
import { addToApp } from '../../support/app-modules.js';
import { ADMIN_TOKEN, startTestGateway } from '../../support/gateway.js';

/* A plain controller is public on the port of the calls: the start says so, and rejects it below /admin. */

@Controller('widgets')
class PlainController {
  @Get()
  list(): string {
    return 'all';
  }
  @Post(':id/parts')
  add(): string {
    return 'added';
  }
  @Get('guarded')
  @UseGuards(GatewayKeyGuard)
  guarded(): string {
    return 'guarded';
  }
  @Get('public')
  @PublicRoute()
  open(): string {
    return 'open';
  }
}

@Controller('gadgets')
@UseGuards(GatewayKeyGuard)
class GuardedController {
  @Get()
  list(): string {
    return 'all';
  }
}

@AdminController('things')
class ThingsController {
  @Get()
  list(): string {
    return 'all';
  }
}

@Controller('admin/v1/widgets')
class PlainAdminController {
  @Get()
  list(): string {
    return 'all';
  }
}

@Controller('widgets')
class PrefixedController {
  @Get()
  list(): string {
    return 'all';
  }
}
@Module({ controllers: [PrefixedController] })
class PrefixedModule {}

@Injectable()
class AllowAll implements CanActivate {
  canActivate(): boolean {
    return true;
  }
}

function startWith(metadata: object) {
  class OwnModule {}
  Module(metadata)(OwnModule as Type);
  addToApp(OwnModule);
  return startTestGateway();
}

let warnings: unknown[] = [];
beforeEach(() => {
  warnings = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((message: unknown) => {
    if (String(message).includes('guard')) warnings.push(message);
  });
});
afterEach(() => jest.restoreAllMocks());

it('names in one line the routes that anybody may call, and how to guard them', async () => {
  const postern = await startWith({ controllers: [PlainController, GuardedController, ThingsController] });
  const statusOf = async (path: string, token = '') =>
    (await fetch(postern.url + path, { headers: { authorization: `Bearer ${token}` } })).status;
  expect(await statusOf('/widgets')).toBe(200);
  expect(await statusOf('/widgets/public')).toBe(200);
  expect(await statusOf('/widgets/guarded')).toBe(401);
  expect(await statusOf('/widgets/guarded', postern.key)).toBe(200);
  expect(await statusOf('/gadgets')).toBe(401);
  expect(await statusOf('/admin/v1/things')).toBe(401);
  expect(await statusOf('/admin/v1/things', ADMIN_TOKEN)).toBe(200);
  await postern.stop();
  expect(warnings).toEqual([
    'Without a guard, anybody who reaches this port may call GET /widgets, POST /widgets/:id/parts. Give each ' +
      '@UseGuards(), such as GatewayKeyGuard, or @PublicRoute() if anybody shall.',
  ]);
});

it('says nothing of the routes of the gateway itself, nor where a guard sees all requests', async () => {
  await (await startWith({})).stop();
  const guard = { provide: APP_GUARD, useClass: AllowAll };
  await (await startWith({ controllers: [PlainController], providers: [guard] })).stop();
  expect(warnings).toEqual([]);
});

const remedy =
  'Without a guard, anybody could call GET /admin/v1/widgets: use @AdminController() in place of @Controller()';

it.each<[string, object]>([
  ['by its own path', { controllers: [PlainAdminController] }],
  [
    'by RouterModule',
    { imports: [PrefixedModule, RouterModule.register([{ path: 'admin/v1', module: PrefixedModule }])] },
  ],
  [
    'also with a guard for all requests, which knows nothing of admin tokens',
    { controllers: [PlainAdminController], providers: [{ provide: APP_GUARD, useClass: AllowAll }] },
  ],
])('does not start with an admin route that nobody guards, %s', async (_, metadata) => {
  await expect(startWith(metadata)).rejects.toThrow(remedy);
});
