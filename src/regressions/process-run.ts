import { Injectable } from '@nestjs/common';
import { v7 as uuidv7 } from 'uuid';

/** This run of this process: a worker that is started again is another one. */
@Injectable()
export class ProcessRun {
  /** A UUIDv7. The directory of its journal has the same. */
  readonly id = uuidv7();
}
