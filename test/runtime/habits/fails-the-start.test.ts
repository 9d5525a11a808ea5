import {
  Body,
  Controller,
  Get,
  Injectable,
  Module,
  type OnModuleDestroy,
  type OnModuleInit,
  type PipeTransform,
  Post,
  Query,
  type Type,
  UsePipes,
} from '@nestjs/common';
import { Interval, ScheduleModule } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { AdminController } from '../../../src/admin/admin-controller.js';
import { Team } from '../../../src/teams/team.entity.js';
import { addToApp } from '../../support/app-modules.js';
import { startTestGateway } from '../../support/gateway.js';
import { setPatience } from '../../support/patience.js';

/* What would do something else than it seems to, in silence, ends the start with the remedy. */

/** Such as Nest's ValidationPipe. */
@Injectable()
class WidgetPipe implements PipeTransform {
  transform(value: unknown): unknown {
    return value;
  }
}

class NewWidget {
  name!: string;
}

@AdminController('widgets')
class ClassController {
  @Post()
  create(@Body() widget: NewWidget): NewWidget {
    return widget;
  }
}

@AdminController('widgets')
class QueryController {
  @Get()
  list(@Query() query: Record<string, string>): object {
    return query;
  }
}

@AdminController('widgets')
class PipedController {
  @Post()
  create(@Body(WidgetPipe) widget: NewWidget): NewWidget {
    return widget;
  }
  @Post('more')
  @UsePipes(WidgetPipe)
  createMore(@Body() widget: NewWidget): NewWidget {
    return widget;
  }
}

@Controller('widgets')
class PlainController {
  @Post()
  create(@Body() widget: NewWidget): NewWidget {
    return widget;
  }
}

@Injectable()
class Seeding implements OnModuleInit {
  constructor(private readonly dataSource: DataSource) {}
  async onModuleInit(): Promise<void> {
    await this.dataSource.query('SELECT 1');
  }
}

@Injectable()
class SeedingTeams implements OnModuleInit {
  constructor(private readonly dataSource: DataSource) {}
  async onModuleInit(): Promise<void> {
    await this.dataSource.getRepository(Team).find();
  }
}

@Injectable()
class Job {
  @Interval(3_600_000)
  run(): void {}
}

function startWith(metadata: object) {
  class OwnModule {}
  Module(metadata)(OwnModule as Type);
  addToApp(OwnModule);
  return startTestGateway();
}

it.each<[string, object, string]>([
  [
    'an admin controller that takes a class as it comes',
    { controllers: [ClassController] },
    'Nobody validates @Body() of the class NewWidget in ClassController.create(): give each a zod schema',
  ],
  ['one that takes any query', { controllers: [QueryController] }, '@Query() in QueryController.list()'],
  ['a query in onModuleInit', { providers: [Seeding] }, 'database.whenReady('],
  ['a repository in onModuleInit', { providers: [SeedingTeams] }, 'database.whenReady('],
  [
    'a second scheduler',
    { imports: [ScheduleModule.forRoot()], providers: [Job] },
    'every job would run twice',
  ],
])('does not start with %s', async (_, metadata, message) => {
  await expect(startWith(metadata)).rejects.toThrow(message);
});

it('starts with inputs that a pipe takes, and with those of plain controllers', async () => {
  const postern = await startWith({ controllers: [PipedController, PlainController] });
  await postern.stop();
});

@Injectable()
class Hanging implements OnModuleDestroy {
  async onModuleDestroy(): Promise<void> {
    await new Promise(() => {});
  }
}

@Injectable()
class Failing implements OnModuleInit {
  onModuleInit(): void {
    throw new Error('not today');
  }
}

it('reports the error of a start although the hook of a module hangs', async () => {
  setPatience(0.05, 'the end of a failed start');
  await expect(startWith({ providers: [Hanging, Failing] })).rejects.toThrow('not today');
});
