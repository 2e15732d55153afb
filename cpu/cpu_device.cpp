#include "cpu/cpu_device.hpp"
