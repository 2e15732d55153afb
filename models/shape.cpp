#include "models/shape.hpp"
