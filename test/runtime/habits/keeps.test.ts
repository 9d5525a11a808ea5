import { Controller, Get, Injectable, Module, UseGuards } from '@nestjs/common';
import { AuthGuard, PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-http-bearer';
import { DataSource, type EntitySubscriberInterface } from 'typeorm';
import { addToApp } from '../../support/app-modules.js';
import { startTestGateway } from '../../support/gateway.js';

/* What modules register beside the gateway's own stays theirs. */

@Injectable()
class OwnStrategy extends PassportStrategy(Strategy) {
  validate(token: string): object | false {
    return token === 'own-token' && { name: 'own' };
  }
}

@Controller('own')
class OwnController {
  @Get()
  @UseGuards(AuthGuard('bearer'))
  get(): string {
    return 'own';
  }
}

const inserted: unknown[] = [];

@Injectable()
class Subscriber implements EntitySubscriberInterface {
  constructor(dataSource: DataSource) {
    dataSource.subscribers.push(this);
  }
  afterInsert({ metadata }: { metadata: { tableName: string } }): void {
    inserted.push(metadata.tableName);
  }
}

@Module({ controllers: [OwnController], providers: [OwnStrategy, Subscriber] })
class OwnModule {}

it('leaves the strategy "bearer" to a module, and calls subscribers that providers have added', async () => {
  addToApp(OwnModule);
  const postern = await startTestGateway();
  const statusWith = async (token: string) =>
    (await fetch(`${postern.url}/own`, { headers: { authorization: `Bearer ${token}` } })).status;
  expect(await statusWith('own-token')).toBe(200);
  expect(await statusWith(postern.key)).toBe(401);
  inserted.length = 0;
  await postern.admin('POST', '/teams', { name: 'observed' });
  expect(inserted).toContain('team');
  await postern.stop();
});
