import { All, NotFoundException } from '@nestjs/common';
import { AdminController } from './admin-controller.js';

/** Whatever else lies below `/admin`: without the token 401 like everything, so that nobody can probe for roads. */
@AdminController('admin')
export class UnknownRoadController {
  @All(['', '*rest'])
  refuse(): never {
    throw new NotFoundException('Nothing lives here under this method. The roads begin with /admin/v1/.');
  }
}
